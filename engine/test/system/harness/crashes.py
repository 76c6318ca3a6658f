"""Faults of the three programs of a scene, for tests that strike at random moments."""

from harness.scene import Scene


def kill_engine(scene: Scene) -> None:
    scene.engine.kill()
    scene.engine.start()


def crash_source(scene: Scene) -> None:
    scene.source.restart("immediate")


def crash_destination(scene: Scene) -> None:
    scene.destination.restart("immediate")
