# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers for a test: a directory of their own, loopback, and a user without privileges."""
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
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
                 "synchronous_standby_names = '%s'\nmax_connections = 40\nshared_buffers = 32MB\n"
                 % (self.port, "on" if sync else "off", synchronous))

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

    def words(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def ask(self, sql):
        """Run SQL: rows of columns, as text."""
        out = self.tool("psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", sql)
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


def last_number(text):
    return int(re.findall(r"\d+", text)[-1])
