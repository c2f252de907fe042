"""A class that is served for a test, and a student who takes part in it."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.simple_httpclient import HTTPStreamClosedError
from tornado.websocket import websocket_connect

from mlc_lab.exercises.room.room import Room
from mlc_lab.exercises.room.server import COOKIE, ClassServer
from mlc_lab.observe.recording import Recording
from mlc_lab_widgets import room as room_pages

HANDMADE = Path(__file__).resolve().parent / "widgets" / "golden_recording.json"


def recording():
    """A recording of six steps with times, of which the fourth is refused."""
    return Recording.from_dict(json.loads(HANDMADE.read_text()))


@asynccontextmanager
async def served(path, recordings=None, port=0, factors=False, roster=()):
    """A class on this machine."""
    recordings = recordings or [recording()]
    room = Room(recordings, path, factors, roster)
    server = ClassServer(room, room_pages.pages(), room_pages.packed(recordings), lambda text: None)
    server.start("127.0.0.1", port, lambda port: f"http://127.0.0.1:{port}/")
    try:
        yield server
    finally:
        await server.stop()


class Student:
    """A phone: it joins, listens, and sends an answer until it is acknowledged."""

    def __init__(self, address, name="", http=None):
        self.address, self.name, self.cookie = address, name, ""
        self.http = http or AsyncHTTPClient()
        self.states: list[dict] = []
        self.news = asyncio.Event()
        self.socket = None

    async def post(self, path, message, **headers):
        """The status and what was said; 0 where there is no server."""
        headers = {"Content-Type": "application/json", "Cookie": self.cookie, **headers}
        request = HTTPRequest(self.address + path, method="POST", body=json.dumps(message),
                              headers=headers, request_timeout=20)
        try:
            reply = await self.http.fetch(request, raise_error=False)
        except (OSError, HTTPStreamClosedError):
            return 0, {}
        found = reply.headers.get("Set-Cookie", "")
        if found.startswith(COOKIE):
            self.cookie = found.split(";")[0]
        return (reply.code, json.loads(reply.body or b"{}")) if reply.code != 599 else (0, {})

    async def join(self, pin, **more):
        return (await self.post("join", {"pin": pin, **more}))[0]

    async def listen(self, hello=None):
        """Open the connection; `states` has what it says. `closed`: the code it ended with."""
        self.closed = None
        address = self.address.replace("http", "ws") + "live"
        self.socket = await websocket_connect(HTTPRequest(address, headers={"Cookie": self.cookie}))
        await self.socket.write_message(json.dumps(hello or {"student": True}))

        async def read(socket):
            while (message := await socket.read_message()) is not None:
                self.states.append(json.loads(message))
                self.news.set()
            self.closed = socket.close_code
            self.news.set()

        self.reading = asyncio.ensure_future(read(self.socket))
        return self

    async def until(self, true, seconds=20):
        """The first state, from now or before, for which something holds."""
        async def wait():
            while True:
                for state in self.states:
                    if true(state):
                        return state
                if self.closed is not None:
                    raise AssertionError(f"the connection ended with {self.closed}")
                self.news.clear()
                await self.news.wait()

        return await asyncio.wait_for(wait(), seconds)

    async def vote(self, question, answers, id=None, tries=100):
        """Send an answer until it is acknowledged, as the page does; the status."""
        message = {"id": id or f"id-{self.name}-{question}", "question": question,
                   "answers": answers}
        for _ in range(tries):
            status, _told = await self.post("vote", message)
            if status not in (0, 429, 503):
                return status
            await asyncio.sleep(0.05)
        return status

    def close(self):
        if self.socket is not None:
            self.socket.close()


class Teacher(Student):
    """The teacher's page."""

    def __init__(self, server):
        super().__init__(server.address)
        self.secret = server.room.teacher

    async def listen(self, hello=None):
        return await super().listen({"teacher": self.secret})

    async def act(self, do, question):
        return (await self.post("act", {"do": do, "question": question},
                                Authorization=f"Bearer {self.secret}"))[0]
