# SPDX-License-Identifier: Apache-2.0
"""Woodpecker as an execution provider of ONNX Runtime.

    import onnxruntime, onnxruntime_ep_woodpecker as ep

    ep.install()
    session = onnxruntime.InferenceSession("model.onnx")

The package needs neither ONNX Runtime nor NumPy to be imported.
"""
import atexit
import functools
import os
import warnings

__version__ = "0.1.0"
__all__ = ["get_ep_name", "get_ep_names", "get_library_path", "install", "uninstall"]

_NAME = "WoodpeckerExecutionProvider"
_LIBRARY = "libwpk-onnxruntime.so"
_CPU = "CPUExecutionProvider"
# The names of graph_optimization_level, and ONNX Runtime's numbers for them.
_LEVELS = {"ORT_DISABLE_ALL": 0, "ORT_ENABLE_BASIC": 1, "ORT_ENABLE_EXTENDED": 2, "ORT_ENABLE_LAYOUT": 3,
           "ORT_ENABLE_ALL": 99}
_original = None  # InferenceSession.__init__ while the provider is installed


def get_library_path():
    """The path of the library, for `onnxruntime.register_execution_provider_library()`.

    It is the one in the package's folder, else the one that WOODPECKER_ONNXRUNTIME_LIBRARY names.

    Returns
    -------
    str
    """
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), _LIBRARY)
    path = beside if os.path.exists(beside) else os.environ.get("WOODPECKER_ONNXRUNTIME_LIBRARY", "")
    if not os.path.exists(path):
        raise FileNotFoundError("%s is neither in the package nor named by WOODPECKER_ONNXRUNTIME_LIBRARY" % _LIBRARY)
    return os.path.abspath(path)


def get_ep_name():
    """The provider's name, as sessions list it.

    >>> get_ep_name()
    'WoodpeckerExecutionProvider'
    """
    return _NAME


def get_ep_names():
    """The names of all providers in the library: one."""
    return [_NAME]


def _register(onnxruntime):
    """Register the library; a string says why that cannot be."""
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        return "Woodpecker needs ONNX Runtime 1.23 or newer, this is %s" % onnxruntime.__version__
    if any(device.ep_name == _NAME for device in onnxruntime.get_ep_devices()):
        return ""
    try:
        onnxruntime.register_execution_provider_library("woodpecker", get_library_path())
    except Exception as error:  # onnxruntime's own classes, one a code
        return str(error)
    return ""


def _options(session_options):
    """The provider's options: what a provider cannot ask of a session's options."""
    if session_options is None:
        return {}
    options = {"intra_op_num_threads": str(session_options.intra_op_num_threads)}
    level = _LEVELS.get(getattr(session_options.graph_optimization_level, "name", ""))
    if level is not None:
        options["graph_optimization_level"] = str(level)
    return options


def _with_ours(providers, provider_options, options):
    """The lists of providers and of their options with ours, before the CPU's, which is ONNX Runtime's default."""
    names = list(providers or [_CPU])
    settings = list(provider_options or [{}] * len(names))
    for index, entry in enumerate(names):
        if not isinstance(entry, str):
            names[index], settings[index] = entry
    if _NAME in names:
        own = names.index(_NAME)
        settings[own] = {**options, **settings[own]}
    else:
        own = names.index(_CPU) if _CPU in names else len(names)
        names.insert(own, _NAME)
        settings.insert(own, options)
    return names, settings


_changed = []  # options of callers that were given our device; kept, so that no other ones take their place
_ENTRY = "ep.woodpeckerexecutionprovider."  # before an option of ours among a session's


def _tell(session_options, options):
    """Set our options among those of a session, which may have been another one's."""
    for name, value in options.items():
        try:
            known = session_options.get_session_config_entry(_ENTRY + name)
        except Exception:  # onnxruntime's own classes: there is no such entry
            known = None
        if known != value:
            session_options.add_session_config_entry(_ENTRY + name, value)


def _by_device(onnxruntime, sess_options, providers, provider_options, options):
    """The session's options with ours, its providers and theirs, for ONNX Runtime before 1.26, which takes no library's
    provider by its name. A session that is to have a third provider stays as it is."""
    names, settings = _with_ours(providers, provider_options, options)
    if any(name not in (_CPU, _NAME) for name in names):
        return sess_options, providers, provider_options
    is_new = sess_options is None
    if is_new:
        sess_options = onnxruntime.SessionOptions()
    if not any(known is sess_options for known in _changed):
        ours = [device for device in onnxruntime.get_ep_devices() if device.ep_name == _NAME]
        sess_options.add_provider_for_devices(ours[:1], {})
        if not is_new:
            _changed.append(sess_options)
    _tell(sess_options, settings[names.index(_NAME)])
    return sess_options, None, None


def install(tune="off", plans=None, words=()):
    """Make every later `onnxruntime.InferenceSession` use the provider, also one for which its caller names providers:
    ours comes right before the CPU's. Sessions whose options got devices by `add_provider_for_devices()` stay as they
    are. Where ONNX Runtime is too old, or the library cannot be registered, a warning says so, and all sessions do.

    Parameters
    ----------
    tune : str
        ``off``: plans that are there serve, and what else is called is noted; ``background``: a thread makes plans for
        it by wpkctl, at the lowest priority; ``now``: a session whose inputs have fixed shapes waits for its plan.
    plans : str, optional
        The folder of plans; else $WOODPECKER_PLANS, else ``~/.local/share/woodpecker/plans``.
    words : list of str
        More options of `wpkctl tune`, such as ``["--seconds", "600"]``.

    Returns
    -------
    bool
        Whether the provider is installed.
    """
    global _original
    import onnxruntime

    from . import _bodies, _plans

    if tune not in ("off", "background", "now"):
        raise ValueError("tune is off, background or now, not %r" % (tune,))
    why = _register(onnxruntime)
    if why:
        warnings.warn(why, RuntimeWarning, stacklevel=2)
        return False
    if _original is not None:
        return True
    _original = original = onnxruntime.InferenceSession.__init__

    where = _plans.folder(plans)
    threads = []
    if tune == "background":
        threads.append(_plans.Background(where, lambda stem: _plans.tune(stem, words)))
    has_service = bool(os.environ.get("WPK_URL"))
    if has_service:
        threads.append(_plans.Background(where, _plans.tell, _plans.TELL_S))
        atexit.register(_plans.tell_at_exit, where, threads[-1].keys)

    @functools.wraps(original)
    def init(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **named):
        key = ""
        is_changed = any(options is sess_options for options in _changed)
        if sess_options is None or is_changed or not sess_options.has_providers():
            options = _options(sess_options)
            key = _plans.note(path_or_bytes, where)
            by_name = _NAME in onnxruntime.get_available_providers()
            if key or not by_name:  # "": options that have been another session's have its key
                options.update(plans=where, model=key, counts_calls=str(int(has_service)))
            if by_name:
                providers, provider_options = _with_ours(providers, provider_options, options)
            else:
                if onnxruntime.__version__.startswith("1.23."):
                    options["has_bodies"] = str(int(_bodies.has_bodies(path_or_bytes)))
                sess_options, providers, provider_options = _by_device(onnxruntime, sess_options, providers,
                                                                       provider_options, options)
        original(self, path_or_bytes, sess_options, providers, provider_options, **named)
        for thread in threads if key else ():
            thread.keys.add(key)
        if key and tune == "now":
            _plans.serve_now(self, where, key, words)

    onnxruntime.InferenceSession.__init__ = init
    return True


def uninstall():
    """Later sessions are as they were before `install()`. Those that use the provider go on with it."""
    global _original
    if _original is not None:
        import onnxruntime

        onnxruntime.InferenceSession.__init__ = _original
        _original = None
