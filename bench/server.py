"""What a killed worker of an asynchronous parameter server costs the others: their steps before and after, of
examples/parameter_server.cc."""

import contextlib
import socket
import subprocess
import threading
import time

from processes import LOCKSTEP, Failed

WORKERS = 4
START, WINDOW = 60, 8  # seconds: for all workers to be at work, and of each count
STALENESS = 8


def free_port():
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Worker:
    """A worker whose lines, one for each ten steps, are counted as they come."""

    def __init__(self, program, number, address):
        words = [program, "work", str(number), str(WORKERS), address, "100000000"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = 0
        self._reader = threading.Thread(target=self._count, daemon=True)
        self._reader.start()

    def _count(self):
        for _ in self.process.stdout:
            self.lines += 1

    def end(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()


def step_after_a_kill():
    """A step of the workers that stay, from the kill of another on, by one before it."""
    program = LOCKSTEP.parent / "example_parameter_server"
    if not program.exists():
        raise Failed(f"{program} is not there; ./run bench builds it first")
    address = f"127.0.0.1:{free_port()}"
    serve = [program, "serve", address, str(WORKERS), "async", str(STALENESS)]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = []
    try:
        workers = [Worker(program, number, address) for number in range(WORKERS)]
        staying = workers[:-1]
        begun = time.monotonic()
        while any(worker.lines < 2 for worker in workers) and time.monotonic() - begun < START:
            time.sleep(0.1)
        counts = []
        for what in ("before", "after"):
            if what == "after":
                workers[-1].process.kill()
            begin = sum(worker.lines for worker in staying)
            time.sleep(WINDOW)
            counts.append(sum(worker.lines for worker in staying) - begin)
        if any(worker.process.poll() is not None for worker in staying) or 0 in counts:
            raise Failed(f"{program}: a worker that was not killed stands still or has ended")
        return counts[0] / counts[1]
    finally:
        for worker in workers:
            worker.end()
        server.kill()
        server.wait()
