"""What a command and the warm engine say to each other, over a socket of this machine.

A message is a kind (one byte), a length (eight) and its content. First both sides prove that they
know the token, which never goes over the wire. Requests are JSON. Answers may be pickled, since who
answers has proved itself; the engine never unpickles.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import threading
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
REQUEST: Final = b"Q"
CANCEL: Final = b"C"
BATCH: Final = b"B"
PROGRESS: Final = b"P"
ANSWER: Final = b"A"
ERROR: Final = b"E"
_HELLO: Final = b"H"
_HEAD: Final = struct.Struct(">cQ")
_NONCE: Final = 32
_PROVE_SECONDS: Final = 5.0
_LONGEST_PROOF: Final = 1024


class RefusedError(ConnectionError):
    """The other side does not know the token."""


class Channel:
    """One connection: messages in both directions. Several threads may send, one receives."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._sending = threading.Lock()
        self._longest: int | None = _LONGEST_PROOF

    def send(self, kind: bytes, content: bytes | memoryview = b"") -> None:
        """Send a message."""
        with self._sending:
            self._sock.sendall(_HEAD.pack(kind, len(content)))
            if len(content):
                self._sock.sendall(content)

    def receive(self) -> tuple[bytes, bytes]:
        """The next message; EOFError when the other side is gone."""
        kind, size = _HEAD.unpack(self._exactly(_HEAD.size))
        if self._longest is not None and size > self._longest:
            raise RefusedError("a message came that is too long for a greeting")
        return kind, self._exactly(size)

    def close(self) -> None:
        """End it, also for a thread that waits in `receive`."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def greet(self, token: str, *, is_server: bool) -> None:
        """Prove to each other that both know the token; nothing else is listened to before."""
        me, them = (b"server", b"client") if is_server else (b"client", b"server")
        self._sock.settimeout(_PROVE_SECONDS)
        mine = secrets.token_bytes(_NONCE)
        self.send(_HELLO, mine)
        theirs = self._hello()
        both = (mine + theirs) if is_server else (theirs + mine)
        # The client proves itself first: who only guesses a port learns nothing.
        if is_server:
            self._check(token, them + both)
        self.send(_HELLO, _proof(token, me + both))
        if not is_server:
            self._check(token, them + both)
        self._sock.settimeout(None)
        self._longest = None

    def _hello(self) -> bytes:
        kind, content = self.receive()
        if kind != _HELLO or len(content) != _NONCE:
            raise RefusedError("it does not greet as a warm engine does")
        return content

    def _check(self, token: str, said: bytes) -> None:
        if not hmac.compare_digest(self._hello(), _proof(token, said)):
            raise RefusedError("it does not know the token")

    def _exactly(self, size: int) -> bytes:
        found = bytearray(size)
        view, at = memoryview(found), 0
        while at < size:
            got = self._sock.recv_into(view[at:])
            if not got:
                raise EOFError("the other side has closed the connection")
            at += got
        return bytes(found)


def connect(port: int, token: str) -> Channel:
    """A connection to an engine that has proved to be the one that wrote down the token."""
    channel = Channel(socket.create_connection((HOST, port), timeout=_PROVE_SECONDS))
    try:
        channel.greet(token, is_server=False)
    except BaseException:
        channel.close()
        raise
    return channel


def _proof(token: str, said: bytes) -> bytes:
    return hmac.new(token.encode(), said, "sha256").digest()
