# SPDX-License-Identifier: Apache-2.0
"""The files that an administrator uses agree with the programs: units, configuration, manuals, completion,
alert rules, operations.md. Tests that need a missing program (systemd-analyze, promtool, zsh) are skipped."""
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import BIN, ROOT, Skip, check, main  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(BIN))
WORKERS = ("wpk-worker", "wpk-worker-gpu", "wpk-builder-cuda")
UNITS = ("wpkd.service", "wpkd.socket", *(name + "@.service" for name in WORKERS))
EXPOSURE_MAX = {"wpkd.service": 20, "wpk-worker@.service": 25, "wpk-worker-gpu@.service": 30,  # of 100; "OK" ends at 40
                "wpk-builder-cuda@.service": 25}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def run(*command, want=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    check(done.returncode == want, "%s ends with %s" % (" ".join(command), want), done.stdout)
    return done.stdout


def need_program(name):
    """The path of a program: the system's, or the one that deploy/setup.sh test has unpacked."""
    found = shutil.which(name, path=os.environ["PATH"] + ":" + os.path.join(ROOT, ".deps/bin"))
    if not found:
        raise Skip("no %s: deploy/setup.sh test" % name)
    return found


def help_of(program, *command):
    return run(os.path.join(BIN, program), *(("help",) + command if command else ("--help",)))


def options_of(text):
    """Long options that a --help lists: they stand at the beginning of a line."""
    return sorted({o for line in re.findall(r"^  (-.*)$", text, re.M)
                   for o in re.findall(r"--[a-z][a-z-]*", line.split("  ")[0])})


def commands_of_wpkctl():
    return re.findall(r"^  ([a-z]+) .*", help_of("wpkctl"), re.M)


# ---- units


def units(box):
    """The units, with the programs of this build."""
    for name in UNITS:
        with open(os.path.join(BUILD, "deploy", name), encoding="utf-8") as file:
            text = re.sub(r"^(ExecStart=).*/(wpkd|wpk-worker) ", r"\g<1>%s/\2 " % os.path.abspath(BIN),
                          file.read(), flags=re.M)
        box.write(name, text)
    for worker in WORKERS:
        shutil.copy(box.path(worker + "@.service"), box.path(worker + "@cpu.service"))
    return [box.path(n.replace("@", "@cpu")) for n in UNITS]


def test_units_are_valid(box):
    need_program("systemd-analyze")
    said = run("systemd-analyze", "verify", "--man=no", *units(box))
    ours = [line for line in said.split("\n") if "wpk" in line]
    check(not ours, "nothing is said of them", ours)


def test_units_are_protected(box):
    need_program("systemd-analyze")
    units(box)
    for name, limit in EXPOSURE_MAX.items():
        path = box.path(name.replace("@", "@cpu"))
        said = run("systemd-analyze", "security", "--offline=true", "--no-pager",
                   "--threshold=%d" % limit, path)
        check("exposure level" in said, "is rated", said)


def test_units_of_workers_name_their_device(box):
    """A GPU's worker has the option for it, and the devices' files; a builder for GPUs has none."""
    units(box)
    for name, instance, device, called in (("wpk-worker@.service", "cpu", "--cpu", "cpu"),
                                           ("wpk-worker-gpu@.service", "0", "--gpu 0", "gpu0"),
                                           ("wpk-builder-cuda@.service", "sm_90", "--build-only --arch sm_90", "build-sm_90")):
        with open(box.path(name), encoding="utf-8") as file:
            text = file.read()
        command = re.search(r"^ExecStart=(.*)", text, re.M).group(1).replace("%i", instance)
        check(" %s --name %%H/%s " % (device, called) in command, "the device", command)
        check("\nPrivateDevices=%s\nProtectClock=%s\n" % (2 * ("no" if called == "gpu0" else "yes",)) in text, "its files", text)


def test_units_say_what_the_code_keeps(box):
    unit = read("deploy/systemd/wpkd.service.in")
    check("\nWatchdogSec=30s\n" in unit and "\nStateDirectoryMode=0700\n" in unit, "of operations.md", unit)
    for text in (unit, read("deploy/systemd/wpk-worker@.service.in")):
        for line in ("Type=notify", "Restart=on-failure", "RestartSec=1s", "StartLimitIntervalSec=0",
                     "RestartPreventExitStatus=2 3", "DynamicUser=yes", "Group=woodpecker"):
            check("\n%s\n" % line in text, line, text)
    documented = re.findall(r"^\.It (\d)$", read("docs/man/wpkd.1"), re.M)
    check(documented == ["0", "1", "2", "3"], "wpkd.1 has every exit code", documented)
    config = read("deploy/wpkd.json")
    for line in re.findall(r"^ListenStream=(.*)", read("deploy/systemd/wpkd.socket.in"), re.M):
        check('"unix:%s"' % line in config, "the socket is a listener of the configuration", line)


def test_configuration_is_installed_once(box):
    script = os.path.join(ROOT, "deploy/install_config.sh")
    source = box.write("wpkd.json", "{}")
    env = {"PATH": os.environ["PATH"], "DESTDIR": box.path("root")}
    run(script, "/etc/woodpecker", source, env=env)
    installed = box.path("root/etc/woodpecker/wpkd.json")
    with open(installed, "w", encoding="utf-8") as file:
        file.write('{"drain_s": 7}')
    said = run(script, "/etc/woodpecker", source, env=env)
    check("stays as it is" in said, "is said", said)
    with open(installed, encoding="utf-8") as file:
        check("7" in file.read(), "the operator's file stays")


# ---- configuration


def without_comments(text):
    return re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda m: m.group(1) or "", text)


def members(value, path=""):
    """Names of all members, below owners and peers none: there they are names of people."""
    found = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            if path in ("peers", "owners"):
                found |= members(inner)
            else:
                found |= {name} | members(inner, name)
    elif isinstance(value, list):
        for inner in value:
            found |= members(inner)
    return found


def test_example_configuration(box):
    text = read("deploy/wpkd.json")
    check("data" in json.loads(without_comments(text)), "is JSON with comments")
    run(os.path.join(BIN, "wpkd"), "--config", os.path.join(ROOT, "deploy/wpkd.json"), "--check-config")
    # Fields that are commented out are valid too.
    everything = re.sub(r'^(\s*)// (, \{.*|"\S+": [\[{].*|   "(?:certificate|key)".*)$', r"\1\2", text,
                        flags=re.M)
    check(everything.count("certificate") > without_comments(text).count("certificate"), "changed")
    everything = everything.replace('"ann": [', '"root": [')
    path = box.write("wpkd.json", everything)
    run(os.path.join(BIN, "wpkd"), "--config", path, "--check-config")
    known = members(json.loads(without_comments(everything)))
    manual = read("docs/man/wpkd.json.5")
    documented = {name for line in re.findall(r"^\.It (Cm .*)", manual, re.M)
                  for name in re.findall(r"Cm ([a-z_]+)", line)}
    check(documented == known, "wpkd.json(5) has what the example has",
          sorted(documented ^ known))
    source = set(re.findall(r'^ +\{[^"\n]*"([a-z_]+)"', read("coordinator/config_read.c"), re.M))
    check(known == source, "and the code reads the same", sorted(known ^ source))


def test_worker_configuration(box):
    text = without_comments(read("deploy/worker.json"))
    options = help_of("wpk-worker")
    for name in json.loads(text):
        check("--" + name in options, "is an option", name)
    code, _, log = box.run("wpk-worker", "--config", os.path.join(ROOT, "deploy/worker.json"), "--nonsense")
    check(code == 2 and "worker.json" not in log, "is read without complaint", code, log)


# ---- what is installed


def test_every_page_is_installed(box):
    rules = read("deploy/meson.build")
    pages = ["docs/" + name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]
    pages += ["schema/openapi.yaml", "schema/job.schema.json", "README.md"]
    missing = [page for page in pages if "../" + page not in rules]
    check(not missing, "pages and schemas", missing)


def test_run_time_packages(box):
    """Those that operations.md names: a library's package is called as it is, with its version."""
    del box
    needed = {"libgomp1"}  # of oneDNN
    for program in os.listdir(BIN):
        if not os.path.isfile(os.path.join(BIN, program)):
            continue
        libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", os.path.join(BIN, program)))
        check("libc.so.6" in libraries, "what it needs", libraries)
        needed |= {re.sub(r"(\d?)\.so\.(\d+)$", lambda m: m[1] + ("-" if m[1] else "") + m[2], name)
                   for name in libraries if re.match("lib(?!c\\.|m\\.|gcc|stdc|Halide|asan|ubsan)", name)}
    listed = re.search(r"needs\n`(libuv.*?)`", read("docs/operations.md"), re.S).group(1).split()
    check(set(listed) == needed, "as the programs need them", sorted(set(listed) ^ needed))


# ---- make


def ninja_file(box, steps, fails=False):
    """A directory to build, of so many steps; the last of them may fail."""
    lines = ["rule step", "  command = touch $out", "rule fail", "  command = echo the compiler says why; exit 1"]
    lines += ["build step%d: step %s" % (i, "step%d" % (i - 1) if i > 0 else "") for i in range(steps)]
    if fails:
        lines.append("build last: fail step%d" % (steps - 1))
    with open(box.path("build.ninja"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def test_make_says_how_far_it_is(box):
    need_program("ninja")
    program = os.path.join(ROOT, "deploy/build.py")
    ninja_file(box, 40)
    out = run(program, box.dir)
    check(out.startswith("make: building, 1 of 40\n") and out.count("\n") < 20, "now and then", out)
    check(run(program, box.dir) == "", "nothing to do is nothing to say")
    ninja_file(box, 41, fails=True)
    out = run(program, box.dir, want=1)
    check("the compiler says why" in out, "what a step prints is passed on", out)


def on_terminal(columns, *command, seen=lambda text: None, **options):
    """(exit code, what was drawn from one wiping of the line to the next); `seen` hears all of it as it comes."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, **options) as process:
        os.close(slave)
        text = b""
        try:
            while chunk := os.read(master, 65536):
                text += chunk
                seen(text)
        except OSError:
            pass  # the other end is closed
    os.close(master)
    return process.returncode, text.decode().replace("\r\n", "\n").split("\r\033[K")


def test_make_draws_one_line_on_a_terminal(box):
    need_program("ninja")
    ninja_file(box, 40)
    code, drawn = on_terminal(30, os.path.join(ROOT, "deploy/build.py"), box.dir)
    check(code == 0 and "make: building, 40 of 40" in [line[:24] for line in drawn], "each step", drawn)
    check(all(len(line) < 30 and "\n" not in line for line in drawn), "in one line that fits", drawn)
    check(drawn[-1] == "", "which is wiped in the end", drawn)


def test_fetching_for_the_bench_says_that_it_goes_on(box):
    """With a pip that goes on until two seconds were told, and ends in vain."""
    for name in ("deploy/progress.sh", "bench/setup.sh", "bench/requirements.txt", "bench/debian.txt"):
        os.makedirs(os.path.dirname(box.path(name)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), box.path(name))
    with open(box.write("python3", """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\\nwhile [ ! -e told ]; do sleep 0.1; done; echo it cannot be had; exit 1\\n' >"$3/bin/pip"
chmod +x "$3/bin/pip"
"""), encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o755)
    code, drawn = on_terminal(80, box.path("bench/setup.sh"), cwd=box.dir,
                              seen=lambda text: b" 2 s" in text and box.write("told", ""),
                              env=dict(os.environ, PATH=box.dir + ":" + os.environ["PATH"]))
    check(code == 1 and drawn[0].startswith("bench setup: fetching ") and "2.5 GB" in drawn[0], "what it does", drawn)
    check("bench setup: 1 s" in drawn and "bench setup: 2 s" in drawn, "that it goes on", drawn)
    check("it cannot be had" in drawn[-1] and "is there a network?" in drawn[-1], "why it failed", drawn)


# ---- manuals, completion


def test_manuals_have_every_option(box):
    del box
    for program in ("wpkd", "wpk-worker", "wpkctl"):
        texts = [help_of(program)]
        if program == "wpkctl":
            texts += [help_of(program, command) for command in commands_of_wpkctl()
                      if command not in ("help", "version")]
        manual = read("docs/man", program + ".1").replace("\\-", "-")
        for option in sorted({o for text in texts for o in options_of(text)} - {"--help", "--version"}):
            check(re.search("(Fl|,) -%s\\b" % option[2:], manual), "%s.1 has %s" % (program, option))


def test_manuals_have_every_command(box):
    del box
    manual = read("docs/man/wpkctl.1")
    for command in commands_of_wpkctl():
        check(re.search(r"\b%s\b" % command, manual), "wpkctl.1 has %s" % command)


def complete(*words):
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _wpk; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", os.path.join(ROOT, "deploy/completion/wpk.bash")]
                          + [os.path.join(BIN, words[0])] + list(words[1:]),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
                          cwd=ROOT)
    return [word for word in done.stdout.split("\n") if word]


def test_bash_completes(box):
    del box
    need_program("bash")
    for program in ("wpkd", "wpk-worker"):
        found = complete(program, "--")
        check(sorted(set(found)) == options_of(help_of(program)), "options of " + program, found)
    check(complete("wpkctl", "") == commands_of_wpkctl(), "commands of wpkctl", complete("wpkctl", ""))
    check(complete("wpkctl", "tu") == ["tune"], "a beginning")
    found = complete("wpkctl", "tune", "--")
    check(sorted(set(found)) == options_of(help_of("wpkctl", "tune")), "options of tune", found)
    check(complete("wpkctl", "tune", "--layouts", "") == ["fixed", "any"], "a choice")
    for command in ("tune", "kernels", "lookup", "get", "run"):
        check(complete("wpkctl", command, "--accuracy", "") == ["strict", "standard", "fast"], "classes of " + command)
        check(complete("wpkctl", command, "--conditions", "cold-") == ["cold-constants"], "conditions of " + command)
    check(complete("wpkctl", "workers", "d") == ["drain"], "what a command can do to something")
    check(complete("wpkctl", "tune", "--seed", "") == [], "a number is nobody's business")
    check(complete("wpkctl", "tune", "--data", "depl") == ["deploy"], "a directory")
    check(complete("wpkctl", "tune", "examples/demo.") == ["examples/demo.json"], "a file")


def test_zsh_completes(box):
    need_program("zsh")
    script = """
compadd() { print -rl -- ${@[2,-1]} }
_files() { print files }
words=("$@"); CURRENT=$#words; PREFIX=$words[CURRENT]
source %s/deploy/completion/_wpk
""" % ROOT
    path = box.write("try.zsh", script)

    def zsh(*words):
        return run("zsh", "-f", path, os.path.join(BIN, words[0]), *words[1:]).split()
    check(zsh("wpkctl", "") == commands_of_wpkctl(), "commands", zsh("wpkctl", ""))
    check(set(options_of(help_of("wpkd"))) <= set(zsh("wpkd", "--")), "options", zsh("wpkd", "--"))
    check(zsh("wpkctl", "tune", "--layouts", "") == ["fixed", "any"], "a choice")
    check(zsh("wpkctl", "tune", "--data", "") == ["files"], "a directory")


# ---- metrics


def metric_names():
    listed = re.findall(r'X\([A-Z_]+, "(wpk_[a-z_]+)"', read("common/metrics.h"))
    check(len(listed) > 30, "the lists of metrics.h are found", listed)
    return set(listed) | {"wpk_build_info"}


def test_alerts_name_metrics_that_are_there(box):
    del box
    text = read("deploy/alerts.yaml")
    names = {re.sub("_(bucket|sum|count)$", "", n)
             for n in re.findall(r"\b(wpk_[a-z_]+)\b", text)}
    check(names and names <= metric_names(), "known metrics", sorted(names - metric_names()))
    labels = read("common/metrics.h")
    for value in re.findall(r'(?:outcome|state|status|reason)!?=~?"([a-z0-9_|]+)"', text):
        for one in value.split("|"):
            check('"%s"' % one in labels, "a label's value", one)


def test_the_dashboard_names_metrics_that_are_there(box):
    del box
    panels = json.loads(read("deploy/grafana.json"))["panels"]
    wanted = [target["expr"] for panel in panels for target in panel["targets"]]
    names = {re.sub("_(bucket|sum|count)$", "", n) for text in wanted for n in re.findall(r"\bwpk_[a-z_]+", text)}
    check(len(names) > 15 and names <= metric_names(), "known metrics", sorted(names - metric_names()))
    labels = read("common/metrics.h")
    for one in {label for text in wanted for label in re.findall(r"by \(([a-z]+)\)", text)} - {"le"}:
        check('"%s"' % one in labels, "a label", one)


def test_alerts_say_what_to_do(box):
    del box
    rules = read("deploy/alerts.yaml").split("- alert: ")[1:]
    check(len(rules) > 10, "the rules are found", len(rules))
    for rule in rules:
        check("summary: " in rule and "description: " in rule, "what it is, and what to do", rule)


def test_alerts_are_valid(box):
    del box
    run(need_program("promtool"), "check", "rules", os.path.join(ROOT, "deploy/alerts.yaml"))


def test_metrics_are_counted_and_documented(box):
    """Every metric is counted by the code outside metrics.c, and operations.md says what it is."""
    del box
    sources = ""
    for folder in ("coordinator", "common", "schema"):
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(".c") and not name.endswith("_test.c") and name != "metrics.c":
                    sources += read(where, name)
    manual = read("docs/operations.md")
    header = read("common/metrics.h")
    for kind, listed in re.findall(r"#define WPK_(COUNTER|GAUGE|HISTOGRAM)_LIST\(X\)(.*?)\n\n", header, re.S):
        for suffix, name in re.findall(r'X\(([A-Z_]+), "(wpk_[a-z_]+)"', listed):
            check("WPK_%s_%s" % (kind, suffix) in sources, "%s is counted somewhere" % name)
            check("`%s" % name in manual, "operations.md has %s" % name)


if __name__ == "__main__":
    main(globals())
