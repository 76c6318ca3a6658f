"""Changes to MkDocs for the help: addresses, scripts in files, Markdown as GitHub reads it."""

import hashlib
import re
from pathlib import Path
from typing import Any

from markdown.extensions import Extension

from markdown import Markdown

INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
LIST_BEGINS = re.compile(r"(?:[*+-]|1[.)]) ")
MANUAL = "docs/"


class TwoSpaces(Extension):
    """Contents of a list's item are indented by two spaces, as on GitHub; Python-Markdown's default is four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # Python-Markdown's name
        md.tab_length = 2


def on_config(config: Any) -> Any:
    config.markdown_extensions.append(TwoSpaces())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages of docs/ are at the top of the site: /help/guides/lab.html."""
    for file in files:
        if file.src_uri.startswith(MANUAL):
            file.dest_uri = file.dest_uri.removeprefix(MANUAL)
            file.abs_dest_path = str(Path(config.site_dir, file.dest_uri))
            file.url = file._get_url(use_directory_urls=False)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A list may follow a line of prose at once, as on GitHub; Python-Markdown wants a blank line between the two."""
    lines: list[str] = []
    fenced = in_list = False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        item = not fenced and LIST_BEGINS.match(line) is not None
        if item and not in_list and lines and lines[-1].strip():
            lines.append("")
        in_list = bool(line.strip()) and (in_list or item)
        lines.append(line)
    return "\n".join(lines)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's short scripts go into files: the console's Content-Security-Policy allows no others."""

    def in_a_file(match: re.Match[str]) -> str:
        name = f"assets/javascripts/inline-{hashlib.sha256(match[1].encode()).hexdigest()[:12]}.js"
        path = Path(config.site_dir, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(match[1])
        return f'<script src="{"../" * page.url.count("/")}{name}"></script>'

    return INLINE_SCRIPT.sub(in_a_file, output)
