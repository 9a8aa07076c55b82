"""A process that becomes a worker whenever one is wanted. What takes long, loading DuckDB and Arrow, is done by then.

    python -m mediator.statements.nursery SOCKET MEMORY

On its socket it is given one end of another, and answers with the number of the process that listens there.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback

from mediator.statements.worker import work

_NICER = 5  # than the process that asks: it has the processors first


def main(descriptor: int, memory: int) -> None:
    os.nice(_NICER)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nothing is left of those that end
    with socket.socket(fileno=descriptor) as line:
        while True:
            said, given, _, _ = socket.recv_fds(line, 1, 1)
            if not said:
                return
            child = os.fork()
            if not child:
                line.close()
                _live(socket.socket(fileno=given[0]), memory)
            os.close(given[0])
            line.sendall(b"%d\n" % child)


def _live(sock: socket.socket, memory: int) -> None:
    status = 1
    try:
        work(sock, memory)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
