"""A real S3 HTTP server on this machine, in a process of its own, for tests.

The server is moto's. Moto looks for an object and then writes it without a lock in between, so two
conditional puts could both win. S3 promises that they can't, therefore requests that change
something are handled here one after the other, and listings, which moto breaks off when something
changes meanwhile, with them; those that read run in parallel.

    with S3Server() as server:
        store = open_store(server.create_bucket("pond"), settings=server.settings())
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

from millpond.base.errors import StoreError
from millpond.base.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class S3Server:
    """Runs from `with` to the end of the block; nothing that was stored survives it."""

    access_key_id = "test"
    secret_access_key = "test-secret"
    region = "us-east-1"

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        # The child ends when its stdin does, so it can't outlive a killed test run.
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "millpond.testing.s3"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer.strip().isdigit():
            self.__exit__()
            raise StoreError(
                "the S3 test server did not start",
                path="",
                hint="pip install 'millpond[dev]'; its messages are above",
            )
        self._port = int(answer)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def endpoint(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._port}"

    def settings(self) -> Settings:
        """Defaults, and what is needed to reach this server; the environment is left out."""
        return Settings.load(
            env={},
            store_endpoint=self.endpoint,
            store_region=self.region,
            store_allow_http=True,
            store_access_key_id=self.access_key_id,
            store_secret_access_key=self.secret_access_key,
        )

    def create_bucket(self, name: str) -> str:
        """Make a bucket, and return its `s3://` URL."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        try:
            connection.request("PUT", f"/{name}", body=b"")
            response = connection.getresponse()
            if response.status != 200:
                text = response.read().decode()
                raise StoreError(f"the bucket {name!r} was refused: {text}", path=name)
        finally:
            connection.close()
        return f"s3://{name}"


def one_change_at_a_time(app: WsgiApp) -> WsgiApp:
    """Handle requests that change something under a lock; see the module's docstring for why."""
    lock = threading.Lock()

    def locked(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        is_listing = "list-type=" in environ.get("QUERY_STRING", "")
        if environ["REQUEST_METHOD"] in ("GET", "HEAD", "OPTIONS") and not is_listing:
            return app(environ, start_response)
        with lock:
            # All of the answer is made here, so that no work is left for after the lock.
            return list(app(environ, start_response))

    return locked


def main() -> None:
    """Serve on a free port, print it, and stop when stdin ends."""
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server(
        "127.0.0.1",
        0,
        one_change_at_a_time(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
        request_handler=MotoRequestHandler,
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
