# SPDX-License-Identifier: Apache-2.0
"""The port of the workers, where anybody may knock: who is no worker takes nothing from those who
are, and who is refused is told why."""
import hashlib
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess

from lib import Service, check, main, need, small_job, wait_for
from port import Port, free_port, make_certificates
from wire import Peer, VERSION, frame, hello, identify, parse, poll, put_artifact, take_items, talk

REFUSED = {"version": VERSION, "type": "poll"}


def test_versions(box):
    """Older and newer workers are told which version is spoken."""
    need("wpkd")
    service = Service(box)
    path = box.path("workers.sock")
    for version in (0, VERSION - 1, VERSION + 1):
        answer = talk(path, frame(dict(hello(), version=version)))
        check(answer["code"] == "EMISMATCH" and "%d is not spoken" % version in answer["text"] and
              "only %d" % VERSION in answer["text"], "told so", answer)
        check(answer["version"] == VERSION, "in the version that is spoken", answer)
        wait_for("it is in the log",
                 lambda: "version %d is not spoken" % version in service.wpkd.text(service.wpkd.err), 5)
    silent = hello()
    del silent["back_ends"]
    check(talk(path, frame(silent))["code"] != "EMISMATCH", "a hello says what back ends there are")
    check(talk(path, frame({"version": VERSION, "type": "dance"}))["code"] != "EMISMATCH", "no message at all")
    check(service.metric("wpk_worker_messages_refused_total") == 5, "they are counted")
    service.stop()


def test_unauthenticated_peers(box):
    """Silent, halting and chattering connections: a worker that comes among them is served, and they
    are gone some time later. The first of the silent go when there are too many."""
    need("wpkd")
    service = Service(box)
    path = box.path("workers.sock")
    silent = [Peer(path) for _ in range(300)]
    check(silent[0].closes_within(60), "the first made room for the last")
    halting = Peer(path)
    halting.greet()
    halting.sock.sendall(halting.head(5000) + b"x" * 10)
    chatter = Peer(path)
    chatter.greet()
    for _ in range(1000):
        try:
            chatter.send(frame(dict(REFUSED, session="1")))
        except OSError:
            break
    with Peer(path) as worker:
        worker.greet()
        welcome = worker.ask(hello())[0]
        check(welcome["type"] == "welcome", "a worker is let in", welcome)
        wait_for("the unauthenticated peers are gone", lambda: silent[-1].closes_within(0.1), 15)
        check(halting.closes_within(60), "who halts, too")
        check(chatter.closes_within(60), "who chatters, too")
        work = worker.ask(poll(welcome["session"]))[0]
        check(work["type"] == "work", "who is known stays", work)
    wait_for("the log has it", lambda: "connections_refused port=workers reason=timeout" in
             service.wpkd.text(service.wpkd.err), 10)
    for reason in ("limit", "timeout"):
        check(service.metric("wpk_worker_connections_refused_total", reason) > 0, "and the metric of " + reason)
    for peer in silent + [halting, chatter]:
        peer.sock.close()
    service.stop()


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_descriptors_are_left(box):
    """1,000 connections on a wpkd that may have 512 descriptors: 256 stay for everything else."""
    need("wpkd")
    limits = (512, 512)
    service = Port(box, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))
    pid = service.wpkd.popen.pid
    most = 0
    peers = []
    for number in range(1000):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.settimeout(0.2)
        try:
            peer.connect(service.local)
        except OSError:
            pass  # the queue in the kernel is full: as good as not let in
        peers.append(peer)
        if number % 100 == 99:
            most = max(most, descriptors(pid))
            check(service.ask("GET", "/healthz")[0] == 200, "clients are served")
    check(most <= 256 + 16, "the last 256 stay free", most)
    for peer in peers:
        peer.close()
    wait_for("all are gone", lambda: descriptors(pid) < 100, 30)
    with Peer(service.local) as worker:
        worker.greet()
        check(worker.ask(hello())[0]["type"] == "welcome", "a worker is let in")
    service.stop()


def resident(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) * 1024


def submit(service):
    check(service.ask("POST", "/v1/jobs", small_job())[0] == 201, "a job")


def test_sizes(box):
    """An unauthenticated peer may send little, a worker 4 MiB and no byte more; output that is not read is bounded."""
    need("wpkd")
    service = Service(box)
    path = box.path("workers.sock")
    with Peer(path) as peer:
        peer.greet()
        peer.sock.sendall(peer.head(65537))
        check(peer.closes_within(60), "too much for an unauthenticated peer")
    before = resident(service.wpkd.popen.pid)
    with Peer(path) as worker:
        worker.greet()
        session = worker.ask(hello())[0]["session"]
        submit(service)
        items = take_items(worker, session, 2)
        data = os.urandom(3 << 20)
        put = put_artifact(session, items[0], data)
        check(worker.ask(put, data)[0]["type"] == "ack", "3 MiB are taken")
        answer = worker.ask(put_artifact(session, items[1], data, sha256="0" * 64), data)[0]
        check(answer["code"] == "ECORRUPT", "and looked at", answer)
        for _ in range(8):
            worker.send(frame(put, data))  # and no answer is read meanwhile
        answers = [parse(worker.receive())[0] for _ in range(8)]
        later = [answer for answer in answers if answer["type"] != "ack"]  # of those beyond four under way
        check(len(later) <= 4 and all(a["code"] == "EBUSY" and a["retry_ms"] > 0 for a in later),
              "each is answered", answers)
        worker.sock.sendall(worker.head((4 << 20) + 1))
        check(worker.closes_within(60), "4 MiB and a byte close the connection")
    grown = resident(service.wpkd.popen.pid) - before
    check(grown < 100 << 20, "memory is bounded", grown)
    check(service.ask("GET", "/healthz")[0] == 200, "wpkd lives")
    service.stop()


QUOTA = 4 << 20


def artifact_bytes(box):
    """The bytes of all files in artifacts/, temporary ones included."""
    return sum(os.path.getsize(os.path.join(directory, name))
               for directory, _, names in os.walk(os.path.join(box.data, "artifacts")) for name in names)


def check_refused(worker, put, data, code, says):
    answer = worker.ask(put, data)[0]
    check(answer["type"] == "error" and answer["code"] == code and says in answer["text"] and
          answer["retry_ms"] == 0, "refused for good", answer)


def test_uploads(box):
    """A worker that sends what nobody asked for, and more than there is room for, takes no more of the
    disk than the quota; what it does to the others is said."""
    need("wpkd")
    service = Port(box, config={"artifacts": {"bytes_max": QUOTA}})
    path = service.local
    data = os.urandom(3 << 20)
    with Peer(path) as hostile, Peer(path) as runner:
        hostile.greet()
        runner.greet()
        session = hostile.ask(hello())[0]["session"]
        for number in range(4):  # no lease at all
            item = {"search": "1", "kind": "trial", "index": number}
            check_refused(hostile, put_artifact(session, item, data), data, "EINVAL", "no open lease")
        check(artifact_bytes(box) == 0, "nothing is written")
        submit(service)
        items = take_items(hostile, session, 2)
        put = put_artifact(session, items[0], data)
        check(hostile.ask(put, data)[0]["type"] == "ack", "what was leased is taken")
        check(hostile.ask(put, data)[0]["type"] == "ack", "and may be sent twice")
        more = b"more of it"
        check_refused(hostile, put_artifact(session, items[0], more), more, "EINVAL", "for this lease")
        more = os.urandom(2 << 20)
        check_refused(hostile, put_artifact(session, items[1], more), more, "ENOSPC", "their quota")
        quarter = os.urandom(1 << 10)
        runs = runner.ask(hello(name="h/2", builds=False))[0]["session"]
        check_refused(runner, put_artifact(runs, items[1], quarter), quarter, "EACCES", "does not build")
        wait_for("its user is told", lambda: "quota" in service.ask("GET", "/v1/jobs")[1]["jobs"][0]["reason"],
                 30)
        check("builds_held" in service.log(), "and its administrator", service.log())
        check(service.metric("wpk_builds_held") == 1, "in the metrics, too")
        # A poll that does not name a lease gives it back.
        hostile.ask(poll(session, want=0))
        check_refused(hostile, put_artifact(session, items[1], quarter), quarter, "EINVAL", "no open lease")
        hostile.ask(poll(session, want=0, holding=[identify(items[1])]))
        check(service.ask("POST", "/v1/workers:quarantine", {"name": "h/1", "reason": "hostile"})[0] == 200,
              "it is put in quarantine")
        check_refused(hostile, put_artifact(session, items[1], quarter), quarter, "EACCES", "hostile")
    check(artifact_bytes(box) == len(data), "the disk has what was taken, and nothing else", artifact_bytes(box))
    # A larger quota needs no restart.
    service.configure(artifacts={"bytes_max": 4 * QUOTA})
    wait_for("builds go on", lambda: service.metric("wpk_builds_held") == 0, 20)
    check(service.metric("wpk_artifact_bytes") == len(data), "what there is")
    service.stop()


def test_answers_that_nobody_takes(box):
    """Workers that ask for artifacts, and take none of them."""
    need("wpkd")
    service = Service(box)
    data = os.urandom(3 << 20)
    sha256 = hashlib.sha256(data).hexdigest()
    asking = []
    for number in range(20):
        peer = Peer(box.path("workers.sock"))
        peer.greet()
        session = peer.ask(hello(name="w%d" % number))[0]["session"]
        message = {"version": VERSION, "session": session, "sha256": sha256}
        if number == 0:
            submit(service)
            put = put_artifact(session, take_items(peer, session, 1)[0], data)
            check(peer.ask(put, data)[0]["type"] == "ack", "it is there")
            before = resident(service.wpkd.popen.pid)
        for _ in range(9):
            peer.send(frame(dict(message, type="get_artifact")))
        asking.append(peer)
    with Peer(box.path("workers.sock")) as worker:
        worker.greet()
        session = worker.ask(hello())[0]["session"]
        message = {"version": VERSION, "session": session, "type": "get_artifact", "sha256": sha256}
        check(worker.ask(message)[1] == data, "who takes it has it")
    grown = resident(service.wpkd.popen.pid) - before
    # 256 MiB of answers, with what is being read for them, copies of one, and 32 MiB that ASan keeps
    check(grown < 320 << 20, "memory is bounded", grown)
    for peer in asking:
        peer.sock.close()
    service.stop()


def test_tcp_needs_a_token(box):
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    service = Port(box)
    for changes, says in (({}, "needs a token"), ({"token": "wpk_wrong"}, "token")):
        with Peer(service.address) as peer:
            peer.greet()
            answer = peer.ask(hello(**changes))[0]
            check(answer["code"] == "EACCES" and says in answer["text"], "refused", answer)
            check("wpk_wrong" not in answer["text"], "the secret is not repeated", answer)
    with Peer(service.address) as peer:
        peer.greet()
        answer = peer.ask(hello())[0]
        check(answer["code"] == "EACCES" and "needs a token" in answer["text"], "a token is needed", answer)
    check("worker_refused" in service.log() and "wpk_wrong" not in service.log(), "in the log")
    with Peer(service.local) as peer:
        peer.greet()
        check(peer.ask(hello())[0]["type"] == "welcome", "over ipc none is needed")
    token = box.write("token", "wpk_wrong\n")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", service.tcp, "--token-file", token)
    code, _, err = worker.wait(30)
    check(code == 3 and "token" in err, "the worker ends, and says why", code, err)
    # And who was refused can be looked up.
    status, token, _ = service.ask("POST", "/v1/tokens", {"owner": "ann", "roles": ["read"]})
    with Peer(service.address) as peer:
        peer.greet()
        check("build" in peer.ask(hello(token=token["secret"]))[0]["text"], "a token without the role")

    def refused():
        return service.ask("GET", "/v1/audit?action=auth.refused")[1]["entries"]
    wait_for("it is written down", lambda: len(refused()) >= 3, 10)
    found = {(entry["actor"], entry["token"], entry["peer"], entry["outcome"]) for entry in refused()}
    check(found == {("", "", "127.0.0.1", "EACCES"), ("ann", token["id"], "127.0.0.1", "EACCES")},
          "by whom, and from where", refused())
    check(all(entry["detail"].startswith("worker: ") for entry in refused()), "and why", refused())
    check("wpk_wrong" not in str(refused()), "without the secret", refused())
    service.stop()


def test_tls(box):
    """A certificate that is trusted lets a job through; another one is refused, and both sides say
    so; one that is replaced costs nobody a connection."""
    need("wpkd")
    ca, certificate, key = make_certificates(box, "first", kind=("rsa:2048",))
    service = Port(box, certificate, key)
    context = ssl.create_default_context(cafile=ca)
    with Peer(service.address, context) as first:
        first.greet()
        answer = first.ask(hello())[0]
        check(answer["code"] == "EACCES", "spoken to, and asked for a token", answer)
        # The same files, another certificate.
        other_ca, other, other_key = make_certificates(box, "second")
        os.replace(other, certificate)
        os.replace(other_key, key)
        service.wpkd.popen.send_signal(signal.SIGHUP)
        wait_for("read again", lambda: "reloaded" in service.log(), 10)
        answer = first.ask(hello())[0]
        check(answer["code"] == "EACCES", "who is there stays", answer)
    trusting = ssl.create_default_context(cafile=other_ca)
    with Peer(service.address, trusting) as second:
        second.greet()
        check(second.sock.version() == "TLSv1.2", "what workers speak", second.sock.version())
    try:
        with Peer(service.address, context) as third:
            third.greet()
        check(False, "the old authority knows nothing of the new certificate")
    except ssl.SSLError as error:
        check("CERTIFICATE_VERIFY_FAILED" in str(error), "refused", error)
    wait_for("the log has it", lambda: "reason=tls" in service.log(), 10)
    check(service.metric("wpk_worker_connections_refused_total", "tls") >= 1, "and the metric")
    # A certificate without its key yet, then a key that is none: what was, stays.
    shutil.copyfile(certificate, box.path("good.pem"))
    os.replace(make_certificates(box, "third")[1], certificate)
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("that is said", lambda: "do not match" in service.log(), 10)
    with Peer(service.address, trusting) as early:
        early.greet()
    os.replace(box.path("good.pem"), certificate)
    box.write("second.key", "no key")
    os.replace(box.path("second.key"), key)
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("that is said", lambda: service.log().count("reload_failed") == 2, 10)
    with Peer(service.address, trusting) as fourth:
        fourth.greet()
    service.stop()


def configure(service, clients, of_clients, of_workers, log="text"):
    """Clients come over TLS, too: to this address, with a certificate of their own."""
    files = [{"certificate": of[1], "key": of[2]} for of in (of_clients, of_workers)]
    service.box.write("wpkd.json", {
        "data": service.box.data, "log": {"format": log},
        "http": {"listen": [{"address": service.url}, dict(files[0], address="%s:%d" % clients)]},
        "workers": {"listen": [dict(files[1], address=service.tcp)]}})


def check_authority(address, authority):
    context = ssl.create_default_context(cafile=authority[0])
    with socket.create_connection(address, timeout=10) as sock:
        context.wrap_socket(sock, server_hostname="localhost").close()


def test_certificates_elsewhere(box):
    """A reload takes files of other names, for clients and workers; one that cannot be read leaves all
    of the configuration as it was."""
    need("wpkd")
    first = make_certificates(box, "first")
    second = make_certificates(box, "second")
    service = Port(box, *first[1:])
    service.stop()
    clients = ("127.0.0.1", free_port())
    configure(service, clients, first, first)
    service.start()
    check_authority(clients, first)
    configure(service, clients, second, second)
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("read again", lambda: " reloaded" in service.log(), 10)
    check("restart_needed" not in service.log(), "all of it is taken", service.log())
    check_authority(clients, second)
    check_authority(service.address, second)
    for of_clients, of_workers in ((("", "/none", "/none"), first), (first, ("", "/none", "/none"))):
        configure(service, clients, of_clients, of_workers, log="json")
        before = service.log().count(" reload_failed")
        service.wpkd.popen.send_signal(signal.SIGHUP)
        wait_for("that is said, as before", lambda: service.log().count(" reload_failed") > before, 10)
        check_authority(clients, second)
        check_authority(service.address, second)
    service.stop()


def test_a_listener_that_cannot_be_opened_again(box):
    """The one failure of a reload that is not undone: clients get their new certificate, workers are
    refused until a reload succeeds, and the rest stays as it was."""
    need("wpkd")
    first = make_certificates(box, "first")
    second = make_certificates(box, "second")
    service = Port(box, *first[1:])
    service.stop()
    clients = ("127.0.0.1", free_port())
    configure(service, clients, first, first)
    # A socket that shares the port with wpkd at first, and then with no other.
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(service.address)
        service.start()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        configure(service, clients, second, second, log="json")
        service.wpkd.popen.send_signal(signal.SIGHUP)
        wait_for("that is said, as before", lambda: " reload_failed" in service.log(), 10)
        check_authority(clients, second)
        try:
            socket.create_connection(service.address, timeout=10).close()
            check(False, "workers are refused", service.log())
        except ConnectionRefusedError:
            pass
    service.wpkd.popen.send_signal(signal.SIGHUP)
    wait_for("it is opened", lambda: '"event":"reloaded"' in service.log(), 10)
    check_authority(service.address, second)
    service.stop()


def refusals(service):
    """{reason: connections of workers that were refused or closed}"""
    text = service.ask("GET", "/metrics")[1].decode()
    return {reason: int(count) for reason, count in re.findall(
        r'^wpk_worker_connections_refused_total{reason="(\w+)"} (\d+)$', text, re.MULTILINE)}


def test_silence_inside_tls(box):
    """Silence before or inside the handshake ends at the deadline of unauthenticated peers, and garbage at once."""
    need("wpkd")
    _, certificate, key = make_certificates(box, "first")
    service = Port(box, certificate, key)
    pid = service.wpkd.popen.pid
    before = descriptors(pid)
    silent = [Peer(service.address) for _ in range(20)]
    for peer in silent[10:]:
        peer.sock.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake
    check(all(peer.closes_within(300) for peer in silent), "each is closed")
    wait_for("each past its deadline", lambda: refusals(service)["timeout"] == len(silent), 20)
    garbage = Peer(service.address)
    garbage.sock.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    check(garbage.closes_within(300), "garbage is no handshake")
    wait_for("which is the reason", lambda: refusals(service)["tls"] == 1, 20)
    wait_for("their descriptors are free", lambda: descriptors(pid) <= before + 1, 20)
    check(refusals(service)["timeout"] == len(silent), "no deadline ended that one", refusals(service))
    for peer in silent + [garbage]:
        peer.sock.close()
    service.stop()


def test_the_end_inside_tls(box):
    """A worker that polls and dies is lost by the end of its connection, behind TLS, too, not by silence."""
    need("wpkd")
    ca, certificate, key = make_certificates(box, "first")
    service = Port(box, certificate, key)
    context = ssl.create_default_context(cafile=ca)
    token = service.ask("POST", "/v1/tokens", {"owner": "ann", "roles": ["build", "measure"]})[1]
    peers = []
    for i in range(21):
        peer = Peer(service.address, context)
        peer.greet()
        welcome = peer.ask(hello(name="h/%d" % i, token=token["secret"]))[0]
        check(welcome["type"] == "welcome", "a worker is let in", welcome)
        peers.append((peer, welcome["session"]))
    check(len(service.joined()) == 21, "they are there", service.joined())
    for peer, session in peers[:20]:
        peer.send(frame(poll(session, wait_ms=60000)))
        peer.sock.close()
    wait_for("the others are gone", lambda: len(service.joined()) <= 1, 120)
    for i in range(20):
        lost = "worker_lost worker=h/%d leases=0 reason=connection_ended" % i
        check(lost in service.log(), "the end of its connection is why", lost, service.log())
    peers[20][0].sock.close()
    service.stop()


def test_a_certificate_of_an_address(box):
    """Inside TLS workers compare names alone: one that was told an address says what to write."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    ca, certificate, key = make_certificates(box, "first", names="IP:127.0.0.1,DNS:localhost")
    service = Port(box, certificate, key)
    token = box.write("token", "wpk_token\n")
    options = ("--ca", ca, "--token-file", token)
    worker = box.start("wpk-worker", "--cpu", "--coordinator", service.tcp, *options)
    wait_for("it says what to write",
             lambda: worker.note() or "write a name that it has" in worker.text(worker.err), 40)
    check(worker.popen.poll() is None, "and goes on trying", worker.text(worker.err))
    worker.popen.terminate()
    worker.wait(20)
    code, _, err = box.start("wpk-worker", "--cpu", "--coordinator", service.tls_url, *options).wait(30)
    check(code == 3 and "token" in err, "by its name it is as far as its token", code, err)
    service.stop()


def test_workers_and_certificates(box):
    """A worker that trusts the certificate gets as far as its token; one that does not says so and
    goes on trying, as the certificate may be replaced."""
    need("wpkd", "wpk-worker", "wpk-builder", "wpk-runner")
    other_ca, _, _ = make_certificates(box, "second")
    # A certificate that is its own authority.
    certificate, key = box.path("wpkd.pem"), box.path("wpkd.key")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "365", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
         key, "-out", certificate], capture_output=True, check=False)
    check(made.returncode == 0, "a certificate", made.stderr)
    service = Port(box, certificate, key)
    token = box.write("token", "wpk_token\n")
    authorities = b""
    for path in (other_ca, certificate):
        with open(path, "rb") as file:
            authorities += file.read()
    code, _, err = box.start("wpk-worker", "--cpu", "--coordinator", service.tls_url, "--ca",
                             box.write("both.pem", authorities), "--token-file", token).wait(30)
    check(code == 3 and "token" in err, "through TLS, and asked for a token", code, err)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(box.path("manager"))
    box.env["NOTIFY_SOCKET"] = box.path("manager")
    worker = box.start("wpk-worker", "--cpu", "--coordinator", service.tls_url, "--ca", other_ca,
                       "--token-file", token)
    wait_for("it says what it does not trust",
             lambda: worker.note() or "does not vouch" in worker.text(worker.err), 40)
    manager.settimeout(10)
    said = [manager.recv(4096).decode() for _ in range(2)]
    check("STATUS=Waiting" in said[0] and "STATUS=Not connected" in said[1], "to its manager, too", said)
    manager.close()
    check(worker.popen.poll() is None, "and goes on trying", worker.text(worker.err))
    worker.popen.terminate()
    worker.wait(20)
    service.stop()


if __name__ == "__main__":
    main(globals())
