"""A TCP relay on loopback that passes no more than so many bytes a second in each direction."""

import contextlib
import socket
import threading
import time

CHUNK = 16 * 1024


class NarrowLink:
    """Owner: one cause. Its threads end with close()."""

    def __init__(self, target: int, bytes_per_second: int) -> None:
        self._target = target
        self._rate = bytes_per_second
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for sock in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()  # the target does not listen yet: whoever connects tries again
                continue
            for sock in (near, far):
                # Buffered bytes count as sent: buffers are small, so that the sender feels the link.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                sink.sendall(data)
                time.sleep(len(data) / self._rate)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
