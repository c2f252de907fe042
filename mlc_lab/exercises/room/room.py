"""A class in a room: who sits there, what is asked, who said what, and who may do what.

Who knows the PIN gets a token, which is a seat. Where there is a roster a seat is a student's name:
who joins with a name that sits already takes the seat over, with what was said there, and the token
before is worth nothing. The first answer to a question counts, and cannot be changed. A message
that is sent again, because its acknowledgement was lost, has the same id and is acknowledged again.
All that changes is written to the file (`journal.py`) before it counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...observe.recording import Recording
from ...reading import DataError, shown
from .journal import FORMAT, VERSION, Journal
from .questions import questions_of, truth_of
from .slow import Slow

#: people who can join
MOST_SEATS = 2000
#: characters of an id
MOST_ID = 64


class Refused(Exception):
    """What may not be done: a status of HTTP, and why. `wait`: the seconds until it may."""

    def __init__(self, status: int, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.status, self.wait = status, wait


class Room:
    """The state of a class. Its coroutines run on one loop."""

    def __init__(self, recordings: list[Recording], path: str | Path,
                 factors: bool = False, roster: Iterable[str] = ()) -> None:
        """Begins a class, or goes on with the one that the file has. With `factors` it is asked
        which factor a split gets, before what the split does. With a `roster` students join by
        their names, each once.

        Raises DataError for a file of something else, or of a class with other recordings.
        """
        self.recordings = recordings
        self.questions = questions_of(recordings, factors)
        self._number = {q["key"]: n for n, q in enumerate(self.questions)}
        self.at, self.revealed, self.door = 0, False, True
        self._seats: dict[str, int] = {}  # digest of a token -> seat
        self._names: dict[str, int] = {}  # name, as it is compared -> seat
        self.roster = {_plain(name) for name in roster}
        self._truths = [truth_of(recordings[q["recording"]], q) for q in self.questions]
        #: by question, by seat: the id of the message, and the answers
        self.votes: list[dict[int, tuple[str, dict[str, str]]]] = [{} for _ in self.questions]
        self._coming: dict[tuple[int, int], tuple[str, asyncio.Future[None]]] = {}
        #: which questions were revealed
        self.told: set[int] = set()
        #: wrong PINs: of one address, of all
        self.wrong, self.wrong_of_all = Slow(10, 1 / 6), Slow(120, 2)
        self.wrong_pins = 0
        #: messages of one seat
        self.quick = Slow(20, 2)
        self._changing = asyncio.Lock()
        self.journal = Journal(path)
        try:
            self._begin()
        except BaseException:
            self.journal.close()
            raise

    def _begin(self) -> None:
        same = hashlib.sha256(json.dumps(self.questions, sort_keys=True).encode()).hexdigest()
        if not self.journal.records:
            head = {"format": FORMAT, "version": VERSION, "questions": same,
                    "class": secrets.token_hex(8),
                    "pin": f"{secrets.randbelow(10**6):06}", "teacher": secrets.token_urlsafe(24),
                    "asks": [[q["key"], q["call"]] for q in self.questions], "at": time.time()}
            self.journal.put(head)
            self.journal.records.append(head)
        head, *rest = self.journal.records
        if head.get("version") != VERSION:
            raise DataError(f"{self.journal.path} is of version {shown(head.get('version'))}; "
                            f"this MLC Lab reads version {VERSION}")
        if head.get("questions") != same:
            raise DataError(f"{self.journal.path} is the file of a class with other steps: "
                            "name another one with -o")
        try:
            self.pin, self.teacher = str(head["pin"]), str(head["teacher"])
            self.name = str(head["class"])
            for record in rest:
                self._apply(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self.journal.path} is damaged: {error!r}") from None

    def _apply(self, record: dict[str, Any]) -> None:
        """Let a line of the file count."""
        do = record["do"]
        if do == "join":
            seat = int(record["seat"])
            for token in [token for token, its in self._seats.items() if its == seat]:
                del self._seats[token]  # another phone of the student's has the seat now
            self._seats[record["token"]] = seat
            if "name" in record:
                self._names[record["name"]] = seat
        elif do == "door":
            self.door = bool(record["open"])
        elif do == "vote":
            of_question = self.votes[self._number[record["question"]]]
            of_question.setdefault(int(record["seat"]), (str(record["id"]),
                                                         dict(record["answers"])))
        elif do == "reveal":
            self.revealed = True
            self.told.add(self._number[record["question"]])
        elif do == "ask":
            self.at = self._number[record["question"]]
            self.revealed = self.at in self.told

    async def _change(self, **record: object) -> None:
        record["at"] = round(time.time(), 3)
        await self.journal.add(record)
        self._apply(record)

    # ------------------------------------------------------------------------------ students

    async def join(self, pin: object, address: str, token: str = "", name: object = None) -> str:
        """A token for who knows the PIN; who has one keeps it. Raises Refused. Where there is a
        roster `name` is one of its names, and a seat that it has is taken over."""
        if self.seat_of(token) is not None:
            return token
        wait = max(self.wrong.wait(address), self.wrong_of_all.wait(""))
        if wait:
            raise Refused(429, "too many wrong PINs: wait a little", wait)
        given = pin.strip().replace(" ", "") if isinstance(pin, str) else ""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.pin.encode()):
            self.wrong.take(address)
            self.wrong_of_all.take("")
            self.wrong_pins += 1
            raise Refused(403, "this is not the PIN")
        called = _plain(name) if isinstance(name, str) else ""
        sits = self._names.get(called) if self.roster else None
        if not self.door and sits is None:
            raise Refused(403, "the teacher has closed the door: nobody can join now")
        if self.roster and not called:
            raise Refused(428, "say your name, as the list of the class has it")
        if self.roster and called not in self.roster:
            self.wrong.take(address)  # names are not guessed either
            raise Refused(403, "this name is not on the list of the class")
        own = {"name": called} if self.roster else {}
        made = secrets.token_urlsafe(24)
        if len(self._seats) >= MOST_SEATS:
            raise Refused(403, f"the room is full: {MOST_SEATS} have joined")
        if sits is not None:
            await self._change(do="join", seat=sits, token=_digest(made), **own)
            return made
        # reserved before it is written: nobody else gets this number
        self._seats[_digest(made)] = seat = max(self._seats.values(), default=0) + 1
        self._names |= dict.fromkeys(own.values(), seat)
        try:
            await self._change(do="join", seat=seat, token=_digest(made), **own)
        except BaseException:
            self._seats.pop(_digest(made), None)
            self._names.pop(called, None)
            raise
        return made

    def seat_of(self, token: object) -> int | None:
        """Whose a token is; None for nobody's."""
        return self._seats.get(_digest(token)) if isinstance(token, str) and token else None

    async def vote(self, seat: int, message: Any) -> None:
        """Take an answer: {"id", "question", "answers"}. Raises Refused."""
        wait = self.quick.take(str(seat))
        if wait:
            raise Refused(429, "too many messages: wait a little", wait)
        id, number, answers = self._read(message)
        key = (number, seat)
        if key in self._coming:
            known, future = self._coming[key]
            if known != id:
                raise Refused(409, "you have answered this question")
            return await asyncio.shield(future)
        if seat in self.votes[number]:
            if self.votes[number][seat][0] != id:
                raise Refused(409, "you have answered this question")
            return
        if number != self.at or self.revealed:
            raise Refused(409, "this question is over: it was revealed before your answer came")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._coming[key] = (id, done)
        try:
            await self._change(do="vote", seat=seat, id=id, question=message["question"],
                               answers=answers)
        finally:
            del self._coming[key]
            if seat in self.votes[number]:
                done.set_result(None)
            else:
                done.set_exception(Refused(503, "it could not be written: it is sent again"))
                done.exception()  # it is told to those who wait, if any

    def _read(self, message: object) -> tuple[str, int, dict[str, str]]:
        """The parts of a message. Raises Refused for what is none."""
        parts = message if isinstance(message, dict) else {}
        id, key, answers = (parts.get(name) for name in ("id", "question", "answers"))
        if not isinstance(id, str) or not 0 < len(id) <= MOST_ID:
            raise Refused(400, "the message has no id")
        number = self._number.get(key) if isinstance(key, str) else None
        if number is None or not isinstance(answers, dict):
            raise Refused(400, "there is no such question")
        asks = {ask["name"]: [value for value, _ in ask["choices"]]
                for ask in self.questions[number]["asks"]}
        for name, value in answers.items():
            if value not in asks.get(name, ()):
                raise Refused(400, "there is no such answer")
        first = self.questions[number]["asks"][0]
        if first["name"] not in answers:
            raise Refused(400, f"say first: {first['text']}")
        return id, number, dict(answers)

    # ------------------------------------------------------------------------------- teacher

    def is_teacher(self, token: object) -> bool:
        """Whether this is the teacher's secret."""
        return isinstance(token, str) and hmac.compare_digest(
            token.encode("utf-8", "replace"), self.teacher.encode())

    async def act(self, do: object, question: object = None) -> None:
        """What the teacher does: "reveal", "next", "back", "open" or "close" the door. A command
        that is about another question than the present one does nothing. Raises Refused."""
        async with self._changing:
            key = self.questions[self.at]["key"]
            if do in ("open", "close"):
                await self._change(do="door", open=do == "open")
            elif do not in ("reveal", "next", "back"):
                raise Refused(400, "there is no such command")
            elif question != key:
                return
            elif do == "reveal":
                if not self.revealed:
                    await self._change(do="reveal", question=key)
            else:
                to = self.at + (1 if do == "next" else -1)
                if 0 <= to < len(self.questions):
                    await self._change(do="ask", question=self.questions[to]["key"])

    # -------------------------------------------------------------------------- what is shown

    def counts(self, number: int) -> dict[str, dict[str, int]]:
        """How many gave each answer to a question."""
        found: dict[str, Counter[str]] = {a["name"]: Counter()
                                          for a in self.questions[number]["asks"]}
        for _, answers in self.votes[number].values():
            for name, value in answers.items():
                found[name][value] += 1
        return {name: dict(counter) for name, counter in found.items()}

    def _shared(self) -> dict[str, Any]:
        """What all see; the truth only once it is revealed."""
        return {"class": self.name, "question": self.questions[self.at], "number": self.at + 1,
                "of": len(self.questions), "revealed": self.revealed,
                "truth": self._truths[self.at] if self.revealed else None}

    def for_students(self, seats: Iterable[int]) -> dict[int, dict[str, Any]]:
        """What each student sees: before it is revealed nothing of what is so, nor of what others
        say."""
        shared = {**self._shared(), "counts": self.counts(self.at) if self.revealed else None}
        return {seat: {**shared, "mine": self.votes[self.at].get(seat, ("", None))[1],
                       "score": self._score(seat)} for seat in seats}

    def _score(self, seat: int) -> list[int]:
        """How many answers of a student's were right, of how many, in what was revealed."""
        right = of = 0
        for number in self.told:
            truth, (_, answers) = self._truths[number], self.votes[number].get(seat, ("", {}))
            for name, value in answers.items():
                if truth[name] is not None:
                    of += 1
                    right += truth[name] == value
        return [right, of]

    def for_teacher(self) -> dict[str, Any]:
        """What the teacher sees."""
        recording = self.questions[self.at]["recording"]
        return {**self._shared(), "counts": self.counts(self.at),
                "answered": len(self.votes[self.at]), "joined": len(self._seats), "pin": self.pin,
                "door": self.door, "wrongPins": self.wrong_pins,
                "told": sorted(self.questions[n]["step"] for n in self.told
                               if self.questions[n]["recording"] == recording
                               and "legal" in self._truths[n])}

    def close(self) -> None:
        """Close the file."""
        self.journal.close()


def _plain(name: str) -> str:
    """A name as it is compared: capitals and spaces do not count."""
    return " ".join(name.split()).casefold()[:200]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


__all__ = ["Refused", "Room"]
