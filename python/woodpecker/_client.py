# SPDX-License-Identifier: Apache-2.0
"""A service's REST interface (coordinator/api/openapi.yaml)."""
import http.client
import json
import os
import socket
import ssl
import time
import urllib.parse

from ._errors import InvalidInput, NotFound, WoodpeckerError

ENDED = ("done", "failed", "cancelled")


class ServiceError(WoodpeckerError):
    """An answer of a service that is none: a problem document.

    Attributes
    ----------
    status : int
        Of HTTP.
    field : str
        The JSON path of what is wrong, or "".
    """

    def __init__(self, status, problem):
        where = problem.get("field", "")
        super().__init__("%s%s" % (where + ": " if where else "", problem.get("detail") or problem.get("title", "")),
                         problem.get("type", "").rpartition(":")[2] or "EINVAL")
        self.status, self.field = status, where


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """A running wpkd.

    Parameters
    ----------
    url : str, optional
        ``https://HOST:PORT``, ``http://HOST:PORT`` or ``unix:PATH``, or several with commas between them, of which the
        one that answers is asked; else $WPK_URL.
    token : str, optional
        Else the content of the file $WPK_TOKEN_FILE. Over http it goes to this machine alone, unless `insecure`.
    ca : str, optional
        A file of certificates to trust; else $WPK_CA, else the system's.
    timeout : float
        Of each answer, in seconds.
    """

    def __init__(self, url=None, token=None, ca=None, insecure=False, timeout=60):
        url = url or os.environ.get("WPK_URL", "")
        servers = [urllib.parse.urlsplit(one) for one in url.split(",")]
        for parts in servers:
            if parts.scheme not in ("unix", "http", "https"):
                raise InvalidInput("%r is no URL of a service: unix:PATH, http://HOST:PORT or https://HOST:PORT" % url)
        if token is None and os.environ.get("WPK_TOKEN_FILE"):
            with open(os.environ["WPK_TOKEN_FILE"], encoding="utf-8") as file:
                token = file.read().strip()
        for parts in servers:
            if token and parts.scheme == "http" and not insecure and parts.hostname not in ("localhost", "127.0.0.1",
                                                                                           "::1"):
                raise InvalidInput("a token would be seen on its way over http; https, or insecure=True")
        self.url, self._servers, self._token, self._timeout = url, servers, token, timeout
        self._ca = ca or os.environ.get("WPK_CA")

    def __repr__(self):
        return "<woodpecker.Client %s>" % self.url

    def _connect(self):
        """A connection to the first server that lets itself be reached; it is asked first from now on."""
        for count in range(len(self._servers)):
            connection = self._make_connection(self._servers[0])
            try:
                connection.connect()
                return connection
            except OSError:
                connection.close()
                if count == len(self._servers) - 1:
                    raise
                self._servers = self._servers[1:] + self._servers[:1]
        raise AssertionError("there is a server")

    def _make_connection(self, server):
        if server.scheme == "unix":
            return _Unix(server.path, self._timeout)
        if server.scheme == "http":
            return http.client.HTTPConnection(server.hostname, server.port, timeout=self._timeout)
        return http.client.HTTPSConnection(server.hostname, server.port, timeout=self._timeout,
                                           context=ssl.create_default_context(cafile=self._ca))

    def call(self, method, path, body=None, **query):
        """One request.

        Returns
        -------
        dict

        Raises
        ------
        ServiceError
            With the service's reason.
        WoodpeckerError
            It cannot be reached.
        """
        query = {name: value for name, value in query.items() if value is not None}
        headers = {"Authorization": "Bearer " + self._token} if self._token else {}
        text = None if body is None else json.dumps(body).encode()
        if text is not None:
            headers["Content-Type"] = "application/json"
        connection = None
        try:
            connection = self._connect()
            connection.request(method, path + ("?" + urllib.parse.urlencode(query) if query else ""), text, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as reason:
            self._servers = self._servers[1:] + self._servers[:1]
            raise WoodpeckerError("%s: %s" % (self.url, reason), "ESYSTEM") from reason
        finally:
            if connection is not None:
                connection.close()
        try:
            found = json.loads(data) if data else {}
        except ValueError:
            found = {"detail": data[:200].decode(errors="replace")}
        if answer.status >= 400:
            raise ServiceError(answer.status, found)
        return found

    def _all(self, path, key, **query):
        """The rows of all pages."""
        token = ""
        while True:
            page = self.call("GET", path, page_token=token or None, **query)
            yield from page[key]
            token = page.get("next_page_token", "")
            if not token:
                return

    def submit(self, job):
        """Start a job.

        Parameters
        ----------
        job : dict, str or os.PathLike
            A job file's content, or its path.

        Returns
        -------
        Job
        """
        if not isinstance(job, dict):
            try:
                with open(job, encoding="utf-8") as file:
                    job = json.load(file)
            except FileNotFoundError as reason:
                raise NotFound(str(reason), "ENOENT") from reason
            except ValueError as reason:
                raise InvalidInput("%s: %s" % (job, reason)) from reason
        return Job(self, self.call("POST", "/v1/jobs", job))

    def job(self, id):
        """The job of an id."""
        return Job(self, self.call("GET", "/v1/jobs/" + urllib.parse.quote(id)))

    def jobs(self, state=None):
        """Every job, newest first; of one state."""
        return [Job(self, found) for found in self._all("/v1/jobs", "jobs", state=state)]

    def kernels(self, **which):
        """Every kernel that is served, as dicts; `fingerprint`, `device`, `accuracy` and so on select."""
        return list(self._all("/v1/kernels", "kernels", **which))

    def workers(self):
        """The workers, as dicts."""
        return list(self._all("/v1/workers", "workers"))

    def lookup(self, op, tune=False, **more):
        """The best kernel that is known of an operator.

        Parameters
        ----------
        op : Op, dict or str
            An operator; as in a job file; or its fingerprint.
        tune : bool
            Whether a job is made for what is not known.
        **more
            `device`, `threads`, `layouts`, `accuracy`, `conditions`, `environment`; `calls` and
            `time_ns`: calls made since it was last asked for, and their time, for `misses`.

        Returns
        -------
        dict
            With `match`: ``exact``, ``near``, ... or ``none``.
        """
        if isinstance(op, str):
            asked = {"fingerprint": op}
        elif isinstance(op, dict):
            asked = {"op": op}
        else:
            asked = {"op": op.notation, "tensors": op.tensors, "constants": op.constants}
        return self.call("POST", "/v1/kernels:lookup", {**asked, **more}, tune=1 if tune else None)

    def misses(self):
        """Operators that were looked up and have no kernel, those that cost most first.

        Returns
        -------
        list of dict
            With `op`, `device`, `threads`, `lookups`, `calls`, `lost_ns`, ...
        """
        found, token = [], None
        while token != "":
            page = self.call("GET", "/v1/misses", page_size=1000, page_token=token)
            found, token = found + page["misses"], page["next_page_token"]
        return found


class Job:
    """A job of a service, with fields as the service says them: ``job["state"]``.

    Attributes
    ----------
    id, state : str
    """

    def __init__(self, client, found):
        self._client, self._found = client, found

    def __repr__(self):
        return "<woodpecker.Job %s %s>" % (self.id, self.state)

    def __getitem__(self, field):
        return self._found[field]

    @property
    def id(self):
        return self._found["id"]

    @property
    def state(self):
        return self._found["state"]

    def refresh(self):
        """Ask how far it is; returns itself."""
        self._found = self._client.call("GET", "/v1/jobs/" + self.id)
        return self

    def watch(self, interval=1.0):
        """Yield the job's fields, each time they change, until it has ended."""
        last = None
        while True:
            if self._found != last:
                last = self._found
                yield last
            if self.state in ENDED:
                return
            time.sleep(interval)
            self.refresh()

    def trials(self, op=None):
        """The candidates that were tried, as dicts."""
        return list(self._client._all("/v1/jobs/%s/trials" % self.id, "trials", op=op))

    def cancel(self):
        """Stop it; what was measured stays in history."""
        self._found = self._client.call("POST", "/v1/jobs/%s:cancel" % self.id)
        return self
