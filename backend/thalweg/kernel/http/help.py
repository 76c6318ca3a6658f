"""Serves the help under /help/: the documentation as a searchable site, built by scripts/help/build.py."""

import html
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from thalweg.kernel.http.files import FOREVER, FRESH, answer_file, file_below

PREFIX = "/help/"
INDEX = "index.html"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Thalweg help</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; }}
:root {{ color-scheme: light dark; }}</style></head>
<body><h1>{title}</h1><p>{text}</p></body></html>
"""
NOT_BUILT = "Build it with <code>make up</code> or <code>scripts/build.sh help</code>, then load this page again."
NO_PAGE = 'There is nothing at <code>{path}</code>. <a href="/help/">Search the help</a> instead.'


class Help:
    """Immutable."""

    def __init__(self, directory: Path) -> None:
        self._root = directory.resolve()

    @staticmethod
    def holds(path: str) -> bool:
        return f"{path}/".startswith(PREFIX)

    def respond(self, request: Request) -> Response:
        path = request.url.path
        if path == PREFIX.rstrip("/"):
            return RedirectResponse(PREFIX, status_code=308)
        if not (self._root / INDEX).is_file():
            return _page("The help has not been built", NOT_BUILT)
        name = path.removeprefix(PREFIX)
        file = file_below(self._root, name + INDEX if name == "" or name.endswith("/") else name)
        if file is None:
            return _page("No such page", NO_PAGE.format(path=html.escape(path)))
        # The generator puts a hash into the names of scripts and styles.
        return answer_file(request, file, FOREVER if name.startswith("assets/") else FRESH)


def _page(title: str, text: str) -> Response:
    return HTMLResponse(PAGE.format(title=title, text=text), status_code=404, headers={"Cache-Control": FRESH})
