# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers for a test: a directory of their own, loopback, and a user without privileges."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from lib import PATIENCE, Skip, check

USER = "nobody"


def find_programs():
    """The directory of PostgreSQL's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        raise Skip("PostgreSQL's programs are not installed: deploy/setup.sh test")
    return os.path.dirname(found[-1])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """One server, stopped; `of`: as the standby of that one. The names of synchronous standbys are `synchronous`."""

    def __init__(self, name="main", of=None, synchronous="", sync=False):
        self.programs = find_programs()
        self.as_user = ["setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []
        self.dir = tempfile.mkdtemp(prefix="wpk-postgres-")
        self.data = os.path.join(self.dir, "data")
        self.port = free_port()
        self.server = None
        if os.getuid() == 0:
            shutil.chown(self.dir, USER)
        if of is None:
            self.tool("initdb", "-N", "-A", "trust", "-U", "wpk", "-E", "UTF8", "--locale=C", "-D", self.data)
        else:
            self.tool("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "-D", self.data, "-d",
                      "host=127.0.0.1 port=%d user=wpk application_name=%s" % (of.port, name))
        self.set("listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nport = %d\nfsync = %s\n"
                 "synchronous_standby_names = '%s'\nmax_connections = 40\ndynamic_shared_memory_type = %s\nshared_buffers = 32MB\n"
                 % (self.port, "on" if sync else "off", synchronous, "posix" if sync else "mmap"))

    def tool(self, name, *args):
        done = subprocess.run(self.as_user + [os.path.join(self.programs, name)] + [str(a) for a in args],
                              cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        check(done.returncode == 0, "%s ended with %d" % (name, done.returncode), done.stderr[-2000:])
        return done.stdout

    def set(self, lines):
        """Append lines to the configuration: the last value of a name counts."""
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a", encoding="utf-8") as file:
            file.write(lines)

    @property
    def url(self):
        return "postgres://wpk@127.0.0.1:%d/postgres" % self.port

    def start(self):
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.server = subprocess.Popen(self.as_user + [os.path.join(self.programs, "postgres"), "-D", self.data],
                                           cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 30 * PATIENCE
        while time.monotonic() < end:
            done = subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", "-h", "127.0.0.1",
                                   "-p", str(self.port)], check=False)
            if done.returncode == 0:
                return self
            check(self.server.poll() is None, "PostgreSQL ended", self.words())
            time.sleep(0.05)
        check(False, "PostgreSQL does not answer", self.words())
        return self

    def database(self, name):
        """The URL of a new database."""
        self.ask("CREATE DATABASE " + name)
        return self.url.replace("/postgres", "/" + name)

    def words(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def ask(self, sql, url=None):
        """Run SQL: rows of columns, as text."""
        out = self.tool("psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", url or self.url,
                        "-c", sql)
        return [line.split("\t") for line in out.splitlines()]

    def promote(self):
        self.ask("SELECT pg_promote()")

    def stop(self, how=signal.SIGQUIT):
        """SIGQUIT: as after a crash, without a checkpoint."""
        if self.server is not None:
            self.server.send_signal(how)
            self.server.wait()
        self.server = None

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class Link:
    """A way to a port of loopback that can be cut. `url`: of what is at its other end, as seen from here."""

    def __init__(self, server):
        self.server = server
        self.is_up = threading.Event()
        self.is_up.set()
        self.pairs = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return self.server.url.replace(":%d/" % self.server.port, ":%d/" % self.port)

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
                self.is_up.wait()
                far = socket.create_connection(("127.0.0.1", self.server.port))
            except OSError:
                if self.listener.fileno() < 0:
                    return
                near.close()
                continue
            self.pairs.add((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other, (near, far)), daemon=True).start()

    def carry(self, one, other, pair):
        try:
            while data := one.recv(65536):
                self.is_up.wait()
                other.sendall(data)
        except OSError:
            pass
        self.drop(pair)

    def drop(self, pair):
        self.pairs.discard(pair)
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def down(self):
        """Hold back all that comes, and tell nobody."""
        self.is_up.clear()

    def up(self):
        self.is_up.set()

    def cut(self):
        """End the connections; new ones can be made."""
        for pair in list(self.pairs):
            self.drop(pair)

    def close(self):
        self.listener.close()
        self.up()
        self.cut()
