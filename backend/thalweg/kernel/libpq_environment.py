"""libpq's environment variables are meant for people at a prompt, not for this process."""

import os


def forget_libpq_environment() -> None:
    """Removes libpq's variables (PGHOSTADDR, PGOPTIONS, PGSERVICE, ...): they would complete users' settings.

    For the start of a process, before there are threads. All that is needed stands in a URL or a database's settings.
    """
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
