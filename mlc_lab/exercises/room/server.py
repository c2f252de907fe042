"""The web server of a class: tornado, which Jupyter brings.

    GET  /            the page of students; it has nothing of the class before the PIN is known
    POST /join        {"pin"} -> a cookie that only this server reads
    POST /vote        {"id", "question", "answers"} -> {}, once the answer is on the disk
    GET  /teacher     the page of the teacher; its secret is behind the # and is not sent with it
    POST /act         {"do", "question"}, with the secret in a header
    GET  /code        the address as a QR code, where segno is installed
    GET  /live        WebSocket: what is shown, whenever it changes; a teacher says the secret first
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import re
from collections.abc import Callable
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ...reading import DataError, read_json
from .room import Refused, Room
from .slow import Slow

#: bytes of a message, connections of one seat, connections of all
MOST_BODY, MOST_OF_SEAT, MOST_LIVE = 4096, 3, 3000
#: seconds between two pictures, and that a connection has to say who it is
PICTURE_S, INTRODUCTION_S = 0.05, 10.0
COOKIE = "mlc_lab_class_"
_HOST = re.compile(r"[\w.:\[\]-]{1,100}", re.ASCII)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' "
                               "'unsafe-inline'; img-src 'self' data:; connect-src 'self'{}; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store", "Server": "MLC Lab",
}


class _Handler(RequestHandler):
    """What all handlers have in common."""

    def initialize(self, server: ClassServer) -> None:
        self.server = server

    def set_default_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        host = self.request.host if _HOST.fullmatch(self.request.host) else ""
        # browsers differ in whether 'self' has the WebSockets of this host
        policy = _HEADERS["Content-Security-Policy"].format(f" ws://{host}" if host else "")
        self.set_header("Content-Security-Policy", policy)

    def prepare(self) -> None:
        wait = self.server.pace.take(self.request.remote_ip or "")
        if wait:
            self.refuse(Refused(429, "too many requests: wait a little", wait))

    def message(self) -> Any:
        """The JSON that was sent. Other pages cannot make a browser send this type."""
        if self.request.headers.get("Content-Type", "").split(";")[0] != "application/json":
            raise Refused(415, "send JSON")
        try:
            return read_json(self.request.body, "the message")
        except DataError as error:
            raise Refused(400, str(error)) from None

    def refuse(self, refused: Refused) -> None:
        self.set_status(refused.status)
        if refused.wait:
            self.set_header("Retry-After", str(math.ceil(refused.wait)))
        self.finish({"why": str(refused), "wait": refused.wait})

    def write_error(self, status_code: int, **_: Any) -> None:
        self.finish({"why": "this could not be done", "wait": 0})


def _told(method: Any) -> Any:
    """What a handler refuses, and a disk that is full, is told to the page."""
    async def run(self: _Handler) -> None:
        try:
            await method(self)
        except Refused as refused:
            self.refuse(refused)
        except OSError as error:
            self.server.say(f"the file cannot be written: {error}")
            self.refuse(Refused(503, "it could not be written: it is sent again", 1.0))
    return run


class _Join(_Handler):
    @_told
    async def post(self) -> None:
        message = self.message()
        message = message if isinstance(message, dict) else {}
        token = await self.server.room.join(message.get("pin"), self.request.remote_ip or "",
                                            self.get_cookie(self.server.cookie) or "",
                                            message.get("name"))
        self.set_cookie(self.server.cookie, token, httponly=True, samesite="Strict", expires_days=2)
        self.finish({})
        self.server.taken_over(self.server.room.seat_of(token), token)
        self.server.picture()


class _Vote(_Handler):
    @_told
    async def post(self) -> None:
        seat = self.server.room.seat_of(self.get_cookie(self.server.cookie))
        if seat is None:
            raise Refused(401, "join first")
        await self.server.room.vote(seat, self.message())
        self.finish({})
        self.server.picture()


class _Act(_Handler):
    @_told
    async def post(self) -> None:
        room, address = self.server.room, self.request.remote_ip or ""
        self.server.guard(self.request.headers.get("Authorization", "")[7:], address)
        message = self.message()
        message = message if isinstance(message, dict) else {}
        await room.act(message.get("do"), message.get("question"))
        self.finish({})
        self.server.news()


class _Page(_Handler):
    def initialize(self, server: ClassServer, kind: str, text: str) -> None:
        super().initialize(server)
        self.kind, self.text = kind, text

    def get(self) -> None:
        self.set_header("Content-Type", self.kind)
        self.finish(self.text)


class _Code(_Handler):
    def get(self) -> None:
        try:
            import segno
        except ImportError:
            self.set_status(404)
            self.finish()
            return
        out = io.BytesIO()
        segno.make(self.server.address, error="m").save(
            out, kind="svg", scale=8, border=4, light="#fff", dark="#000")
        self.set_header("Content-Type", "image/svg+xml")
        self.finish(out.getvalue())


class _Live(WebSocketHandler):
    """A connection: of a student by the cookie, of a teacher by the first message."""

    def initialize(self, server: ClassServer) -> None:
        self.server = server
        self.seat: int | None = None
        self.token = ""
        self.is_teacher = False

    def prepare(self) -> None:
        if self.server.pace.take(self.request.remote_ip or ""):
            self.set_status(429)
            self.finish()

    def open(self, *_: str, **__: str) -> None:
        self.set_nodelay(True)
        if len(self.server.live) >= MOST_LIVE:
            self.close(1013, "the room is full")
            return
        self.server.live[self] = None
        self.token = self.get_cookie(self.server.cookie) or ""
        self.seat = self.server.room.seat_of(self.token)
        asyncio.get_running_loop().call_later(INTRODUCTION_S, self._unknown)

    def _unknown(self) -> None:
        if not self.is_teacher and not self.seated:
            self.close(4401, "join first")

    @property
    def seated(self) -> bool:
        return self in self.server.of_seat.get(self.seat or 0, ())

    def on_message(self, message: str | bytes) -> None:
        if self.is_teacher or self.seated:  # nothing more is said here
            self.close(4400, "say nothing here")
            return
        try:
            said = read_json(message, "the message")
        except DataError:
            said = None
        said = said if isinstance(said, dict) else {}
        if "teacher" in said:
            try:
                self.server.guard(said["teacher"], self.request.remote_ip or "")
            except Refused as refused:
                self.close(4401 if refused.status == 401 else 4429, str(refused))
                return
            self.is_teacher = True
            self.tell({"recordings": self.server.packed, "address": self.server.address,
                       "code": self.server.has_code})
            self.tell(self.server.room.for_teacher())
        elif (seat := self.server.room.seat_of(self.token)) is None:
            self.close(4401, "join first")
        else:
            own = self.server.of_seat.setdefault(seat, [])
            own.append(self)
            for old in own[:-MOST_OF_SEAT]:
                old.close(4409, "too many windows")
            self.tell(self.server.room.for_students([seat])[seat])

    def tell(self, data: dict[str, Any]) -> None:
        try:
            self.write_message(json.dumps(data, allow_nan=False))
        except WebSocketClosedError:
            pass

    def on_close(self) -> None:
        self.server.live.pop(self, None)
        own = self.server.of_seat.get(self.seat or 0, [])
        if self in own:
            own.remove(self)


class ClassServer:
    """Serves a room.

    Parameters
    ----------
    pages : by path: its type and its text.
    packed : the recordings as the stepper takes them.
    say : called with what a teacher at the terminal must know.
    """

    def __init__(self, room: Room, pages: dict[str, tuple[str, str]], packed: list[dict[str, Any]],
                 say: Callable[[str], None] = print) -> None:
        self.room, self.packed, self.say = room, packed, say
        #: of this class alone: browsers share cookies between the ports of a machine
        self.cookie = COOKIE + room.name
        #: requests of one address, which may be that of a whole room
        self.pace = Slow(3000, 300)
        self.live: dict[_Live, None] = {}
        self.of_seat: dict[int, list[_Live]] = {}
        self.address = ""
        self.port = 0
        try:
            import segno  # noqa: F401
            self.has_code = True
        except ImportError:
            self.has_code = False
        self._soon: asyncio.TimerHandle | None = None
        own = {"server": self}
        self._app = Application(
            [("/join", _Join, own), ("/vote", _Vote, own), ("/act", _Act, own),
             ("/code", _Code, own), ("/live", _Live, own),
             *((path, _Page, {**own, "kind": kind, "text": text})
               for path, (kind, text) in pages.items())],
            default_handler_class=_Nothing, default_handler_args=own, log_function=lambda _: None,
            websocket_ping_interval=20, websocket_ping_timeout=20,
            websocket_max_message_size=MOST_BODY, compress_response=True)

    def start(self, host: str, port: int, address: Callable[[int], str]) -> None:
        """Begin to serve; `address(port)` is what students open. Raises OSError."""
        sockets = bind_sockets(port, host, backlog=512)
        self.port = sockets[0].getsockname()[1]
        self.address = address(self.port)
        self._http = HTTPServer(self._app, max_body_size=MOST_BODY, max_header_size=16_384,
                                idle_connection_timeout=120, body_timeout=10)
        self._http.add_sockets(sockets)

    async def stop(self) -> None:
        """End all connections, and close the file."""
        self._http.stop()
        for one in list(self.live):
            one.close(1001, "the class is over")
        await self._http.close_all_connections()
        self.room.close()

    def guard(self, token: Any, address: str) -> None:
        """Raises Refused for one who is not the teacher; guessing is slowed."""
        if self.room.is_teacher(token):
            return
        wait = self.room.wrong.take(address)
        raise Refused(429, "wait a little", wait) if wait else Refused(
            401, "this is not the teacher's address")

    def taken_over(self, seat: int | None, token: str) -> None:
        """Tell the phones that had a seat before that another one has it now."""
        for one in [one for one in self.of_seat.get(seat or 0, []) if one.token != token]:
            one.close(4410, "another phone has joined with this name")

    def picture(self) -> None:
        """Soon tell the teachers what has come in: many answers make one picture."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(PICTURE_S, self._draw)

    def _draw(self) -> None:
        self._soon = None
        teachers = [one for one in self.live if one.is_teacher]
        if teachers:
            data = self.room.for_teacher()
            for one in teachers:
                one.tell(data)

    def news(self) -> None:
        """Tell all what is shown now."""
        self._draw()
        for seat, data in self.room.for_students(list(self.of_seat)).items():
            for one in list(self.of_seat[seat]):
                one.tell(data)


class _Nothing(_Handler):
    def prepare(self) -> None:
        self.refuse(Refused(404, "there is no such page"))


__all__ = ["ClassServer"]
