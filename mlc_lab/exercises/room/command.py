"""What `mlc-lab class` does; `mlc_lab/cli.py` has its words."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import signal
import socket
import sys
from pathlib import Path

from ...above import above
from ...reading import DataError
from ..command import MISTAKE, told
from ..teach.roster import read_roster
from .questions import recordings_in
from .room import Room

#: what stands for all addresses of this machine
EVERYWHERE = ("0.0.0.0", "::", "")


@told
def serve(args: argparse.Namespace) -> int:
    """Serve a class until it is interrupted."""
    try:
        from .server import ClassServer
    except ImportError:
        print("mlc-lab: a class needs tornado. Install it with:  pip install 'mlc-lab[class]'",
              file=sys.stderr)
        return MISTAKE
    if not 0 <= args.port < 1 << 16:
        raise DataError(f"{args.port} is no port: ports are numbers below 65536")
    recordings = recordings_in(args.notebook)
    path = Path(args.output or f"{Path(args.notebook).stem}.class.jsonl")
    before = path.exists()
    names = read_roster(args.roster) if args.roster else ()
    room = Room(recordings, path, args.factors, names)
    pages = above("pages of a class in a room")
    server = ClassServer(room, pages.pages(), pages.packed(recordings),
                         lambda text: print(text, file=sys.stderr, flush=True))

    async def run() -> None:
        try:
            server.start(args.host, args.port, lambda port: address_of(args.host, port))
        except OSError as error:
            room.close()
            raise DataError(f"it cannot serve on {args.host}, port {args.port}: {error}; "
                            "--port names another one, 0 any that is free") from None
        print(_said(server, room, args.host, path, before), flush=True)
        stop = asyncio.Event()
        try:
            for name in ("SIGINT", "SIGTERM"):
                asyncio.get_running_loop().add_signal_handler(getattr(signal, name), stop.set)
        except NotImplementedError:  # Windows: the interrupt ends the loop itself
            pass
        try:
            await stop.wait()
        finally:
            await server.stop()

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        pass
    print(f"\nThe class is in {path}. The same command goes on with it.")
    return 0


def _said(server: object, room: Room, host: str, path: Path, before: bool) -> str:
    address, port = server.address, server.port  # type: ignore[attr-defined]
    own = "localhost" if host in EVERYWHERE else _bracketed(host)
    lines = [
        f"{len(room.questions)} questions; the hour is kept in {path}"
        + (" (an earlier one goes on)" if before else ""),
        "",
        f"  you        http://{own}:{port}/teacher#{room.teacher}",
        f"  students   {address}   PIN {room.pin}",
        "",
    ]
    if _is_loopback(host):
        lines.append("Only this machine can reach it: leave --host out for the local network.")
    else:
        lines.append("Everyone on this network can reach it. Without the PIN it shows nothing; "
                     "it is not encrypted.")
        lines.append("Keep your own address to yourself: it reveals and closes the door.")
    return "\n".join([*lines, "Ctrl-C ends it."])


def address_of(host: str, port: int) -> str:
    """The address that students open."""
    return f"http://{_bracketed(own_address() if host in EVERYWHERE else host)}:{port}/"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_address() -> str:
    """This machine's address on the local network; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


__all__ = ["address_of", "own_address", "serve"]
