"""The layer rule: a folder includes only what stands on its line. src/README.md says what each layer is for."""
import re

# Layer: the layers that it may include beside itself. "any" is everything.
ALLOWED = {
    "include": [],
    "core": [],
    "os": ["core"],
    "config": ["core", "os"],
    "observe": ["core", "config", "os"],
    "plan": ["core", "config"],
    "decide": ["core", "config", "plan"],
    "kernels": ["core"],
    "device": ["core", "config", "os", "observe", "kernels"],
    "pipeline": ["core", "config", "os", "observe", "plan", "device"],
    "fallback": ["core", "config", "os", "observe"],
    "dispatch": ["core", "os", "config", "observe", "plan", "decide", "kernels", "device", "pipeline", "fallback", "include"],
    "abi": ["dispatch", "fallback", "observe", "core", "include"],
    "cli": "any",
    "bench": "any",
    "tests": "any",
}

# What marks CUDA's own headers, and where they may be seen.
CUDA_HEADER = re.compile(r"^(cuda|cublas|curand|nvml|cooperative_groups|mma\.h|nvrtc|device_launch|sm_\d+_)")
CUDA_PLACES = ("src/device/cuda/", "src/kernels/", "bench/")

# Headers that would bring iostreams, locales or regular expressions into the library that is injected into strangers.
UNWANTED = {"iostream", "locale", "regex", "sstream", "fstream", "iomanip", "ostream", "istream"}
INJECTED = {"core", "os", "config", "observe", "plan", "decide", "kernels", "device", "pipeline", "fallback", "dispatch", "abi"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def layer_of(path):
    """Layer of a file, by its path from the repository's root; None outside the layers."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("include", "fallback", "bench", "tests") and len(parts) > 1:
        return parts[0]
    return None


def layer_of_include(name, kind):
    """Layer that an include names; None for the system's and third parties' headers."""
    first = name.split("/")[0]
    if "/" not in name:
        return None
    if first == "gemmhoist":
        return "include"
    if first in ALLOWED and (kind == '"' or first in ("core", "dispatch")):
        return first
    return None


def violations(path, text):
    """Yields one line for each include of `path` that the rule forbids."""
    layer = layer_of(path)
    if layer is None:
        return
    if layer not in ALLOWED:
        yield f"{path}: {layer} is no layer: add it to the tables here and in src/README.md"
        return
    allowed = ALLOWED[layer]
    for kind, name in INCLUDE.findall(text):
        if name.startswith("."):
            yield f"{path}: includes {name}: name headers from the root, never relative to the file"
        if CUDA_HEADER.match(name) and (kind == "<" or name.endswith(".h")) and not path.startswith(CUDA_PLACES):
            yield f"{path}: includes {name}: CUDA headers belong to {', '.join(CUDA_PLACES)}"
        if layer in INJECTED and kind == "<" and name in UNWANTED:
            yield f"{path}: includes <{name}>, which the injected library does without"
        target = layer_of_include(name, kind)
        if allowed == "any" or target is None or target == layer:
            continue
        if target not in allowed:
            yield f"{path}: {layer} includes {name}, of layer {target}; it may include {', '.join(allowed) or 'nothing'}"
