"""Files generated from the code are up to date: other parts build on them."""

import importlib.util
from pathlib import Path
from types import ModuleType

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from tests.support.servers import Cluster
from thalweg.db.models import Base

BACKEND = Path(__file__).resolve().parents[1]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BACKEND / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_openapi_document_is_current() -> None:
    export = script("export_openapi")
    assert export.TARGET.read_text() == export.rendered(), "run backend/scripts/export_openapi.py"


def test_command_line_reference_is_current() -> None:
    export = script("export_cli")
    assert export.TARGET.read_text() == export.rendered(), "run backend/scripts/export_cli.py"


def test_reference_of_findings_is_current() -> None:
    export = script("export_findings")
    assert export.TARGET.read_text() == export.rendered(), "run backend/scripts/export_findings.py"


def test_migrations_make_the_schema_of_the_models(cluster: Cluster, store_template: str) -> None:
    engine = create_engine(cluster.url(store_template))
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    engine.dispose()
    assert differences == []
