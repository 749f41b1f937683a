"""Records the conversation of a client with a server over a Unix socket, for floor.c to repeat."""
import contextlib
import os
import select
import socket
import struct
import threading


class Relay:
    """Listens beside a server and passes everything on; keeps the longest conversation."""

    def __init__(self, server_path, path):
        self.server_path, self.path = server_path, path
        self.conversations = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(64)
        self.threads = []

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Wakes the thread that accepts, which a close alone does not.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(5)
        os.unlink(self.path)

    def accept(self):
        """Takes connections until the listener is closed."""
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                thread = threading.Thread(target=self.carry, args=(client,), daemon=True)
                thread.start()
                self.threads.append(thread)

    def carry(self, client):
        """Passes on what either side says; an exchange ends when the client speaks after the server has."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.connect(self.server_path)
        exchanges = [[b"", 0]]
        self.conversations.append(exchanges)
        with client, server, contextlib.suppress(OSError):
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(1 << 20)
                    if not data:
                        return
                    if end is client:
                        if exchanges[-1][1]:
                            exchanges.append([b"", 0])
                        exchanges[-1][0] += data
                        server.sendall(data)
                    else:
                        exchanges[-1][1] += len(data)
                        client.sendall(data)

    def longest(self, path, repeated):
        """Writes the longest conversation to a file: where its last `repeated` answered exchanges begin and end."""
        exchanges = max(self.conversations, key=len)
        last = len(exchanges)
        while last and exchanges[last - 1][1] == 0:
            last -= 1
        with open(path, "wb") as file:
            for request, received in exchanges:
                file.write(struct.pack("=I", len(request)) + request + struct.pack("=I", received))
        return last - repeated, last
