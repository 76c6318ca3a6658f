"""Builds the help, a searchable site, from the Markdown pages of the repository.

usage: build.py OUTPUT, with the Python of the help's own virtual environment (build_help in scripts/lib/builds.sh).

A link that leads nowhere fails the build. Files that a page links to and that are no pages (a chart, a script) are
taken along.
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from terms import add_to_search

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "*/README.md", "docs/**/*.md",
         "deploy/*/README.md", "engine/*/*.md", "engine/src/*/README.md", "engine/test/*/README.md",
         "backend/thalweg/*/README.md", "frontend/src/*/README.md")
# Of Markdown, and of the pictures that pages place by HTML.
TARGET = re.compile(r"\]\(([^)\s#]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"")
COMPRESSED = {".html", ".js", ".css", ".json", ".svg"}
ASSETS = {"frontend/public/favicon.svg": "images/favicon.svg", "scripts/help/help.css": "help.css"}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    output = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        pages = Path(directory, "pages")
        site = Path(directory, "site")
        for source in _pages():
            _lay(source, pages / source.relative_to(ROOT))
        for name, target in ASSETS.items():
            _lay(ROOT / name, pages / target)
        # Its notice of another version of MkDocs is no warning about our pages.
        environment = os.environ | {"THALWEG_HELP_PAGES": str(pages), "THALWEG_HELP_SITE": str(site),
                                    "NO_MKDOCS_2_WARNING": "true"}
        built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict",
                                "--config-file", str(HERE / "mkdocs.yml")], env=environment, check=False)
        if built.returncode:
            return built.returncode
        # The API answers for what is not there.
        (site / "404.html").unlink()
        add_to_search(site)
        _compress(site)
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(site, output)
    print(f"{sum(1 for _ in output.rglob('*.html'))} pages")
    return 0


def _pages() -> set[Path]:
    """The pages, and what they link to."""
    pages = {path for pattern in PAGES for path in ROOT.glob(pattern) if "node_modules" not in path.parts}
    linked = {(page.parent / (match[1] or match[2])).resolve()
              for page in pages for match in TARGET.finditer(page.read_text())}
    return pages | {path for path in linked if path.is_file() and path.is_relative_to(ROOT)}


def _lay(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _compress(site: Path) -> None:
    """Lays compressed copies beside the files that browsers load; the API hands them out."""
    for path in sorted(site.rglob("*")):
        if path.suffix in COMPRESSED:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
