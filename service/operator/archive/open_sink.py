"""Opens the sink that RUMMIKUB_ARCHIVE_URL names. The libraries of sinks are optional."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from service.operator.archive.sink import Sink
from service.operator.archive.sqlite_sink import SqliteSink
from service.settings import PREFIX, SettingsError


def open_sink(url: str) -> Sink:
    """Returns the sink of a URL. A server that it names need not answer yet. Raises SettingsError."""
    scheme = url.partition(":")[0]
    try:
        if scheme == "sqlite":
            return SqliteSink(Path(unquote(urlsplit(url).path)))
        if scheme == "s3":
            from service.operator.archive.s3_sink import S3Sink  # noqa: PLC0415 - an optional library

            return S3Sink(url)
        from service.operator.archive.postgresql_sink import PostgresqlSink  # noqa: PLC0415 - an optional library

        return PostgresqlSink(url)
    except ImportError:
        raise SettingsError(f"{PREFIX}ARCHIVE_URL: install rummikub-service[{scheme}] for {scheme}://") from None
    except OSError as error:
        raise SettingsError(f"{PREFIX}ARCHIVE_URL: the folder cannot be used ({error.strerror})") from None
    except ValueError as error:
        raise SettingsError(f"{PREFIX}ARCHIVE_URL: {error}") from None
