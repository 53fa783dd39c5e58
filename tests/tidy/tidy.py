#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to the rules that no compiler checks.

    tidy.py [ROOT]        check the tree; exit code 1 and one line per breach
    tidy.py --self-test   show each check something that it has to find
    tidy.py --draw        draw the include graph into docs/architecture.md

Who may include whom, circles of files, the graph in docs/architecture.md, types that are defined twice, which file may
know which library, calls that are banned, guards, headers that compile alone, files that no build lists, tests without
a subject, licence lines, layout of lines, sentences without a subject, and, where clang-format is there, whether C
sources are laid out as it would.
A file of more than 600 lines is a warning only.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import circles
import graph
import names
import words

# folder: what it may include, besides what those may.
MAY_INCLUDE = {
    "common": [],
    "tests/gpu": ["common"],
    "schema": ["common"],
    "ir": ["schema"],
    "ir/notation": ["ir"],
    "ir/canonical": ["ir/notation"],
    "ir/reference": ["ir", "ir/notation"],
    "ir/derive": ["ir"],
    "ir/instruction": ["ir/notation"],
    "nest": ["ir/derive", "ir/instruction"],
    "search": ["nest", "ir/canonical"],
    "search/model": ["search"],
    "search/strategy": ["search/model"],
    "target/cpu": ["search"],
    "target/c": ["nest"],
    "target/gpu": ["target/c"],
    "target/gpu/space": ["search"],
    "target/halide": ["target/gpu"],
    "target": ["target/halide", "search"],
    "model": ["ir"],
    "model/operator": ["model", "ir/derive", "ir/notation", "ir/reference"],
    "model/onnx": ["model/operator"],
    "model/rewrite": ["model/operator"],
    "model/region": ["model/rewrite", "ir/canonical"],
    "model/plan": ["model/region", "model/onnx", "runtime/model", "ir/instruction"],
    "runtime": ["schema"],
    "runtime/onnxruntime": ["runtime"],
    "runtime/vendor": ["runtime"],
    "runtime/gpu": ["runtime/vendor"],
    "runtime/kernel": ["runtime/gpu"],
    "runtime/model": ["runtime/kernel"],
    "worker/verify": ["ir/reference", "ir/notation"],
    "worker": ["worker/verify"],
    "worker/provider": ["worker", "runtime/kernel"],
    "worker/runner": ["worker/provider", "ir/derive"],
    "worker/builder": ["worker", "target", "runtime/kernel"],
    "worker/engine": ["worker/runner", "target"],
    "worker/session": ["worker/engine"],
    "coordinator": ["coordinator/api", "coordinator/db"],
    "coordinator/access": ["schema"],
    "coordinator/state": ["search/strategy"],
    "coordinator/store": ["coordinator/access", "coordinator/state"],
    "coordinator/index": ["coordinator/store"],
    "coordinator/http": ["coordinator/access"],
    "coordinator/effects": ["coordinator/http", "coordinator/index"],
    "coordinator/pages": ["coordinator/store", "target"],
    "coordinator/api": ["coordinator/effects", "coordinator/pages", "ir/reference"],
    "coordinator/db": ["coordinator/store"],
    # model: wpkctl turns a model into operators and a plan; the service knows no model.
    "client": ["runtime/model", "target", "search/strategy", "model/plan"],
}
EVERYTHING = ("bench", "tests", "examples")

# A foreign library's headers: the files that may include them. Tests and bench of the library's
# own folder do not count as such; cmocka is for tests alone.
FOREIGN = {
    r"uv\.h": ["common/loop.c"],
    r"nng/.*": ["common/net_dial.c", "common/net_dial.h", "common/net_listener.c"],
    r"(cjson/)?cJSON\.h": ["common/json.c"],
    r"sodium.*": ["common/crypto.c"],
    r"xxhash.*": ["common/checksum.c"],
    r"sqlite3\.h": ["coordinator/store/store.c", "coordinator/store/store_changes.c", "coordinator/store/checkpoint.c",
                    "tests/sim/faulty_vfs.c"],
    r"libpq(-fe|/libpq-fs)\.h": ["coordinator/store/keeper.c"],
    r"microhttpd\.h": ["coordinator/http/http_daemon.c", "coordinator/http/http_exchange.c"],
    r"curl/curl\.h": ["client/http.c"],
    r"Halide\.h": ["target/halide/halide.cc", "target/halide/expression.hh"],
    r"HalideRuntime\.h": ["runtime/stub.c"],
    r"(oneapi/)?dnnl.*": ["runtime/vendor/onednn_library.h"],
    r"cublasLt\.h|cudnn\.h|cuda.*|nvml\.h|nvrtc\.h": ["tests/cuda_header.cc"],
    r"openvino/.*": ["bench/peer_openvino.c"],
    r"sanitizer/asan_interface\.h": ["common/arena.c", "common/arena_test.c"],
    r"onnxruntime.*": ["bench/peer_onnxruntime.c"],
}

SYSTEM_HEADERS = re.compile(
    r"(sys|linux|arpa|netinet|net)/[\w/]+\.h|"
    r"(assert|cpuid|complex|ctype|dirent|dlfcn|elf|errno|fcntl|fenv|float|fnmatch|ftw|getopt|glob|"
    r"grp|immintrin|inttypes|iso646|libgen|limits|link|locale|malloc|math|netdb|poll|pthread|pwd|"
    r"sched|semaphore|setjmp|signal|spawn|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|"
    r"stdlib|stdnoreturn|string|strings|syslog|termios|threads|time|ucontext|unistd|wchar)\.h")

FORMATTER = shutil.which("clang-format")

# call: what to use instead.
BANNED = {
    "sprintf": "snprintf or wpk_buf_printf", "vsprintf": "vsnprintf or wpk_buf_vprintf",
    "strcpy": "snprintf or memcpy", "strcat": "wpk_buf_append_text", "strncpy": "snprintf",
    "strncat": "wpk_buf_append", "stpcpy": "memcpy", "gets": "fgets", "strtok": "strcspn",
    "atoi": "strtol", "atol": "strtol", "atoll": "strtoll", "atof": "strtod",
    "system": "posix_spawn or fork and exec", "popen": "posix_spawn or fork and exec",
    "rand": "wpk_rng_next", "srand": "wpk_rng_seed", "random": "wpk_rng_next",
    "srandom": "wpk_rng_seed", "drand48": "wpk_rng_unit", "alloca": "an arena",
    "mktemp": "mkostemp", "tmpnam": "mkostemp", "gmtime": "gmtime_r", "localtime": "gmtime_r",
    "ctime": "wpk_clock_format", "asctime": "wpk_clock_format",
    "setlocale": "nothing: numbers are read and written in the C locale",
    "assert": "WPK_ASSERT",
}

# ir/, nest/ and search/ do no I/O, read no clock, own no thread: a seed replays a run bit for bit.
IMPURE = ("printf fprintf puts fputs putchar fopen fread fwrite open fork time clock clock_gettime "
          "gettimeofday pthread_create getenv wpk_log wpk_clock_system wpk_crypto_random "
          "wpk_fs_read wpk_fs_write").split()

# A driver has no caller that could pass values down: it is configured by the environment, as NVIDIA's is.
READS_ENVIRONMENT = ("tests/gpu/driver.c", "tests/gpu/nvml.c")

CODE = (".c", ".h", ".cc", ".hh")
WITH_LICENCE = CODE + (".py", ".sh", ".sql", ".yaml", ".build", ".map", ".service")
LINES_MAX = 600
COLUMNS_MAX = 100

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.MULTILINE)


def closure(folder, seen=None):
    """Every folder that `folder` may include, itself too."""
    seen = seen if seen is not None else set()
    if folder not in seen:
        seen.add(folder)
        for below in MAY_INCLUDE.get(folder, []):
            closure(below, seen)
    return seen


def is_test(path):
    return path.startswith("tests/") or "_test." in path


def blank(match):
    """Something as long and as tall, without content, so that line numbers stay right."""
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """The text with comments, and strings outside #include lines, blanked."""
    pattern = r'//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern,
                  lambda m: m.group(0) if m.group(0).lstrip().startswith("#") else blank(m),
                  text, flags=re.DOTALL | re.MULTILINE)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def folder_of(path):
    """The innermost folder that has rules of its own, or else the outermost."""
    parts = os.path.dirname(path).split("/")
    folders = ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
    return next((folder for folder in folders if folder in MAY_INCLUDE), parts[0])


def check_includes(path, text):
    folder = folder_of(path)
    for match in INCLUDE.finditer(text):
        quote, name = match.groups()
        line = line_of(text, match.start())
        if quote == '"':
            target = folder_of(name)
            if "/" not in name:
                yield line, 'write the path from the root: "%s/%s"' % (os.path.dirname(path), name)
            elif target == "tests" and path.endswith("_test.c"):
                continue  # what several folders' tests share
            elif folder in MAY_INCLUDE and "_test." not in path and target not in closure(folder):
                yield line, "%s/ may not include %s/" % (folder, target)
            continue
        if SYSTEM_HEADERS.fullmatch(name):
            continue
        if name == "cmocka.h":
            if not is_test(path):
                yield line, "cmocka.h is for tests"
            continue
        if path.endswith((".cc", ".hh")) and "." not in name:
            continue  # the C++ library
        owners = [files for pattern, files in FOREIGN.items() if re.fullmatch(pattern, name)]
        if not owners:
            yield line, "<%s> is no header that this project knows" % name
        elif path not in owners[0] and folder != "bench":
            yield line, "<%s> belongs to %s alone" % (name, " and ".join(owners[0]))


def check_calls(path, text):
    if not path.endswith(CODE):
        return
    code = code_only(text)
    pure = path.split("/")[0] in ("ir", "nest", "search") and not is_test(path)
    for match in re.finditer(r"(?<![\w.])(?<!->)(\w+)[ \t]*\(", code):
        name = match.group(1)
        if name in BANNED:
            yield line_of(code, match.start()), "%s() is banned: use %s" % (name, BANNED[name])
        elif pure and name in IMPURE:
            yield line_of(code, match.start()), "%s() in ir/, nest/ or search/, which are pure" % name
        elif name in ("getenv", "secure_getenv") and not is_test(path) and \
                not os.path.basename(path).endswith("main.c") and path not in READS_ENVIRONMENT:
            yield line_of(code, match.start()), "getenv() below main: pass the value down"


def check_guard(path, text):
    if path.endswith(".h"):
        guard = "WPK_" + re.sub(r"[^A-Z0-9]", "_", path.upper())
        guards = ["#ifndef " + guard + "\n#define " + guard + "\n"]
        if path.startswith("runtime/wpk.h"):
            guards.append("#ifndef WPK_H\n#define WPK_H\n")  # installed by this name
        if not any(g in text for g in guards):
            yield 1, "guard %s is missing" % guard


def check_licence(path, text):
    if path.endswith(WITH_LICENCE) or os.path.basename(path) == "Makefile":
        if not any("SPDX-License-Identifier: Apache-2.0" in l for l in text.split("\n", 2)[:2]):
            yield 1, "no SPDX line"


def check_layout(path, text):
    if not path.endswith(CODE):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield number, "%d columns" % len(line)
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end"
    if not text.endswith("\n"):
        yield 1, "no newline at the end"
    if path.endswith((".cc", ".hh")) and not path.startswith("target/halide/") and not is_test(path):
        yield 1, "C++ is for target/halide/*.cc alone"
    for match in re.finditer(r"\b(TODO|FIXME|XXX|HACK)\b", text):
        yield line_of(text, match.start()), "%s: do it, or file it" % match.group(1)


def check_built(path, text, files):
    """A source that no meson.build names is dead; a test without its subject is an orphan."""
    del text
    folder = path.split("/")[0]
    stem, extension = os.path.splitext(os.path.basename(path))
    if extension not in (".c", ".cc") or (folder not in MAY_INCLUDE and folder not in EVERYTHING):
        return
    # Sources that tests share are built by the folder that they test.
    builds = "".join(text for name, text in files.items()
                     if folder == "tests" and name.endswith("meson.build"))
    where = os.path.dirname(path)
    while where:
        builds += files.get(where + "/meson.build", "")
        where = os.path.dirname(where)
    named = "'../%s'" % path
    builds += "".join(named for name, text in files.items() if name.endswith("meson.build") and named in text)
    subject = stem[:-len("_test")] if stem.endswith("_test") else stem
    if not re.search(r"'[^'\n]*\b%s(_test)?(\.cc?)?'" % re.escape(subject), builds):
        yield 1, "no meson.build names it"
    if stem.endswith("_test") and folder in MAY_INCLUDE:
        beside = os.path.join(os.path.dirname(path), subject)
        if not any(beside + e in files for e in (".c", ".cc", ".h")):
            yield 1, "a test of %s, which is not there" % subject


TEXT_CHECKS = (check_includes, check_calls, check_guard, check_licence, check_layout, words.check)


def check_text(path, text, files):
    checks = TEXT_CHECKS if path.endswith(CODE) else (check_licence, words.check)
    if not path.endswith(WITH_LICENCE) and os.path.basename(path) != "Makefile":
        checks = (words.check,)
    for check in checks:
        for line, message in check(path, text):
            yield "%s:%d: %s" % (path, line, message)
    for line, message in check_built(path, text, files):
        yield "%s:%d: %s" % (path, line, message)


COMPILERS = {"C": ("CC", "cc", ["-x", "c", "-std=c11"]),
             "C++": ("CXX", "c++", ["-x", "c++", "-std=c++17"])}


def compile_headers(root, language, paths):
    """The compiler's first error for a file that includes these headers; None: it compiles."""
    variable, compiler, options = COMPILERS[language]
    command = [os.environ.get(variable, compiler)] + options
    command += ["-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I" + root, "-isystem",
                os.path.join(root, ".deps/onednn/include"), "-fsyntax-only"]
    for path in paths:
        command += ["-include", os.path.join(root, path)]
    done = subprocess.run(command + ["/dev/null"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return None
    return next((l for l in done.stdout.split("\n") if "error" in l), done.stdout)


def check_headers(root, headers):
    """Each has to compile by itself, as C and as C++. Headers that compile as C are compiled as C++ together with their
    folder, and alone again if two of a folder conflict."""
    folders = {}
    for path in headers:
        folders.setdefault(os.path.dirname(path), []).append(path)
    work = [("C", [path]) for path in headers] + [("C++", paths) for paths in folders.values()]
    with ThreadPoolExecutor(max_workers=2) as pool:
        while work:
            again = []
            for (language, paths), why in zip(work, pool.map(lambda w: compile_headers(root, *w), work)):
                if why and len(paths) > 1:
                    again += [(language, [path]) for path in paths]
                elif why:
                    yield "%s:1: does not compile alone as %s: %s" % (paths[0], language, why)
            work = again


def check_format(root, paths):
    """C sources as .clang-format says; headers, and C++, are laid out by hand."""
    command = [FORMATTER, "--style=file", "--dry-run", "-Werror"]
    done = subprocess.run(command + paths, cwd=root, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    first = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: error:", done.stdout, re.M):
        first.setdefault(path, line)
    for path, line in first.items():
        yield "%s:%s: not laid out as clang-format would: make format" % (path, line)
    if done.returncode != 0 and not first:
        yield "clang-format: " + done.stdout.strip()


def read_tree(root):
    files = {}
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not (f.startswith((".", "__")) or (directory == root and f.startswith("build"))))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), root)
            if path.endswith(WITH_LICENCE + (".md",)) or name == "Makefile":
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    files[path] = file.read()
    return files


def draw_graph(files):
    return graph.draw(graph.edges_of(files, folder_of, is_test), MAY_INCLUDE)


def read_document(root):
    with open(os.path.join(root, graph.DOCUMENT), encoding="utf-8") as file:
        return file.read()


def draw_tree(root):
    document = graph.BLOCK.sub(draw_graph(read_tree(root)), read_document(root))
    with open(os.path.join(root, graph.DOCUMENT), "w", encoding="utf-8") as file:
        file.write(document)
    return 0


def check_tree(root):
    files = read_tree(root)
    breaches = [m for path, text in files.items() for m in check_text(path, text, files)]
    breaches += circles.check(files, code_only)
    breaches += names.check(files, code_only)
    breaches += graph.check(read_document(root), draw_graph(files))
    has_onednn = os.path.isdir(os.path.join(root, ".deps/onednn/include"))
    breaches += check_headers(root, [path for path in files if path.endswith(".h") and (
        has_onednn or path != "runtime/vendor/onednn_library.h")])
    if FORMATTER:
        breaches += check_format(root, [p for p in files if p.endswith(".c")])
    else:
        print("tidy: no clang-format here: the layout of sources is not checked")
    for path, text in files.items():
        lines = text.count("\n")
        if path.endswith(CODE) and lines > LINES_MAX:
            print("%s:%d: warning: %d lines; which noun is hiding in there?" % (path, lines, lines))
    for breach in breaches:
        print(breach)
    print("tidy: %d files, %d breaches" % (len(files), len(breaches)))
    return 1 if breaches else 0


SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"

# path, text, part of the breach that has to be found; None: there is none.
SAMPLES = [
    ("ir/a.c", '#include "schema/job.h"\n#include "common/err.h"\n', None),
    ("ir/a.c", '#include "search/space.h"\n', "ir/ may not include search/"),
    ("ir/a.c", '#include "tests/random_program.h"\n', "ir/ may not include tests/"),
    ("ir/a_test.c", '#include "tests/random_program.h"\n', None),
    ("coordinator/a.c", '#include "worker/runner/runner.h"\n', "may not include worker/"),
    ("coordinator/state/a.c", '#include "coordinator/store/store.h"\n',
     "coordinator/state/ may not include coordinator/store/"),
    ("worker/a.c", '#include "coordinator/store/store.h"\n', "may not include coordinator/"),
    ("worker/a.c", '#include "ir/shape.h"\n', None),
    ("bench/a.c", '#include "worker/runner/runner.h"\n', None),
    ("ir/a.c", '#include "shape.h"\n', "path from the root"),
    ("common/a.c", "#include <uv.h>\n", "belongs to common/loop.c alone"),
    ("common/loop.c", "#include <uv.h>\n", None),
    ("common/a.c", "#include <boost/any.hpp>\n", "no header that this project knows"),
    ("common/a.c", "#include <cmocka.h>\n", "cmocka.h is for tests"),
    ("common/a.c", "int a(void)\n{\n    return atoi(x);\n}\n", ":4: atoi() is banned"),
    ("common/a.c", 'const char *a = "atoi(x)"; /* atoi(x) */ // atoi(x)\n', None),
    ("common/a.c", "x->system(1); y.rand(); wpk_rand(3);\n", None),
    ("ir/a.c", "x = time(NULL);\n", "which are pure"),
    ("ir/a_test.c", 'printf("x");\n', None),
    ("worker/a.c", 'getenv("HOME");\n', "below main"),
    ("worker/session/main.c", 'getenv("HOME");\n', None),
    ("tests/gpu/driver.c", 'getenv("HOME");\n', None),
    ("ir/a.h", "#ifndef WPK_IR_B_H\n#define WPK_IR_B_H\n#endif\n", "guard WPK_IR_A_H"),
    ("ir/a.h", "#ifndef WPK_IR_A_H\n#define WPK_IR_A_H\n#endif\n", None),
    ("ir/a.c", "int a;" + " " * 95 + "\n", "columns"),
    ("ir/a.c", "\tint a;\n", "a tab"),
    ("ir/a.c", "int a; \n", "blanks at the end"),
    ("ir/a.c", "/* TO" "DO */\n", "do it, or file it"),
    ("ir/a.c", "/* Wha" "t a group becomes. */\n", 'begins with "What"'),
    ("ir/a.h", "/* The end.\n * Who" "ever comes waits. */\n", 'begins with "Whoever"'),
    ("ir/a.c", "/* Is it th" "ere? */\n", "a comment asks"),
    ("ir/a.md", "It ends. Nob" "ody waits.\n", 'begins with "Nobody"'),
    ("ir/a.c", 'x("What is it?"); /* The title says what it is. */\n', None),
    ("ir/a.cc", "int a;\n", "C++ is for target"),
    ("ir/dead.c", "int a;\n", "no meson.build names it"),
    ("ir/gone_test.c", "int a;\n", "which is not there"),
]


def test_format():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(root, ".clang-format"), folder)
        for name, text in (("good.c", "int a;\n"), ("bad.c", "int  a;\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = list(check_format(folder, ["good.c", "bad.c"]))
    good = len(found) == 1 and found[0].startswith("bad.c:1: not laid out")
    if not good:
        print("clang-format of good.c and bad.c: found %r" % found)
    return 0 if good else 1


def test_headers():
    texts = {"bad.h": "size_t a;\n", "class.h": "extern int class;\n", "good.h": "#include <stddef.h>\n"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = [re.match(r"(\w+)\.h:1: does not compile alone as (\S+): ", breach).groups()
                 for breach in check_headers(folder, sorted(texts))]
    good = sorted(found) == [("bad", "C"), ("bad", "C++"), ("class", "C++")]
    if not good:
        print("headers alone: found %r" % found)
    return 0 if good else 1


def test_circles():
    files = {
        "ir/a.c": "int wpk_a(int n)\n{\n    return wpk_b();\n}\n",
        "ir/b.c": "int wpk_b(void)\n{\n    return wpk_table[0]();\n}\nstatic int wpk_a(void)\n{\n}\n",
        "ir/c.c": "const struct wpk_t wpk_table[] = {wpk_a};\n/* wpk_d() */\n",
        "ir/d.c": "wpk_err wpk_d(int a,\n    int b)\n{\n    wpk_a(1);\n}\n",
        "ir/x.h": '#include "ir/y.h"\n',
        "ir/y.h": '#include "ir/x.h"\n#include "ir/z.h"\n',
        "ir/z.h": "int wpk_a(int n);\n",
    }
    found = sorted(circles.check(files, code_only))
    good = found == ["ir/a.c: a circle of files: a.c, b.c, c.c", "ir/x.h: a circle of files: x.h, y.h"]
    if not good:
        print("circles: found %r" % found)
    return 0 if good else 1


def test_names():
    files = {
        "ir/a.h": "struct wpk_a {\n    int a;\n};\nstruct wpk_b;\nenum shape { ROUND };\n",
        "ir/b.c": "struct wpk_b {\n};\ntypedef void (*wpk_a)(int n);\nstruct own {\n};\n",
        "ir/c.c": "/* struct wpk_b { */\nstruct own {\n};\nstruct shape {\n};\n",
        "ir/d.h": "typedef struct wpk_d {\n    int d;\n} wpk_d;\ntypedef struct wpk_b wpk_b;\n",
        "ir/e.c": "struct wpk_strategy {\n};\n",
        "ir/f.c": "struct wpk_strategy {\n};\n",
    }
    found = list(names.check(files, code_only))
    good = found == ["ir/c.c:4: shape is a type of ir/a.h:5, too", "ir/b.c:3: wpk_a is a type of ir/a.h:1, too"]
    if not good:
        print("names: found %r" % found)
    return 0 if good else 1


def test_graph():
    files = {
        "search/a.c": '#include "ir/x.h"\n#include "common/err.h"\n',
        "search/a_test.c": '#include "schema/z.h"\n',
        "ir/x.h": '#include "common/err.h"\n#include "gone.h"\n',
        "common/err.h": "",
        "bench/b.c": '#include "ir/x.h"\n',
    }
    drawn = draw_graph(files)
    good = drawn == "graph TD\n    ir --> common\n    search --> ir\n"
    good &= not list(graph.check("```mermaid\n%s```\n" % drawn, drawn))
    good &= bool(list(graph.check("```mermaid\n%s```\n" % drawn, "graph TD\n")))
    if not good:
        print("graph: drew %r" % drawn)
    return 0 if good else 1


def self_test():
    failed = 0
    for path, text, expected in SAMPLES:
        files = {"%s/meson.build" % f: "'a.c', 'a', 'a.cc', 'gone', 'main.c', 'loop.c', 'driver.c'"
                 for f in list(MAY_INCLUDE) + list(EVERYTHING)}
        files.update({path: text, "ir/a.c": ""})
        found = list(check_text(path, SPDX + text, files))
        good = not found if expected is None else any(expected in f for f in found)
        if not good:
            failed += 1
            print("%s %r: expected %r, found %r" % (path, text, expected, found))
    if not list(check_licence("ir/a.c", "int a;\n")):
        failed += 1
        print("a missing licence line was not found")
    failed += test_headers()
    failed += test_circles()
    failed += test_names()
    failed += test_graph()
    if FORMATTER:
        failed += test_format()
    print("tidy: self-test of %d samples, %d failed" % (len(SAMPLES) + 1, failed))
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.argv[1:] == ["--draw"]:
        return draw_tree(os.path.dirname(os.path.dirname(here)))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
    return check_tree(os.path.abspath(root))


if __name__ == "__main__":
    sys.exit(main())
