"""Files of a build, answered as browsers want them: how long they may be kept, and compressed where that is taken.

The builds lay compressed copies beside their files (`index.js.br`, `index.js.gz`); a browser gets the smallest one that
it accepts (RFC 9110, 12.5.3).
"""

import mimetypes
from pathlib import Path

from fastapi.responses import FileResponse
from starlette.requests import Request

FOREVER = "public, max-age=31536000, immutable"
FRESH = "no-cache"
NAME_LENGTH_MAX = 255
"""Bytes in a file's name, on every file system that is common."""
# The smaller one first.
ENCODINGS = {"br": ".br", "gzip": ".gz"}


def file_below(root: Path, path: str) -> Path | None:
    """The file that `path` names, if it is one below `root`, which is resolved."""
    if "\x00" in path:
        return None
    try:
        file = (root / path.lstrip("/")).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except OSError:  # A name that is too long names no file, nor does one in a folder that cannot be read.
        return None


def answer_file(request: Request, file: Path, caching: str) -> FileResponse:
    headers = {"Cache-Control": caching, "Vary": "Accept-Encoding"}
    media_type = mimetypes.guess_type(file.name)[0]
    for encoding in ENCODINGS:
        copy = file.with_name(file.name + ENCODINGS[encoding])
        if accepts(request.headers.get("accept-encoding", ""), encoding) and copy.is_file():
            return FileResponse(copy, headers={**headers, "Content-Encoding": encoding}, media_type=media_type)
    return FileResponse(file, headers=headers, media_type=media_type)


def accepts(header: str, encoding: str) -> bool:
    """Whether a browser takes `encoding`: it is listed, and not with a weight of 0."""
    for item in header.lower().split(","):
        name, _, weight = item.partition(";")
        if name.strip() == encoding:
            return weight.replace(" ", "").rstrip("0").rstrip(".") != "q="
    return False
