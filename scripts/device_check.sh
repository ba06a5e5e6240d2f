#!/usr/bin/env bash
# Tests and measures dalify on the accelerator of this machine, and writes one report: scripts/device_check.sh [REPORT]
# Takes a few minutes. Needs no network: it uses the Python that PYTHON names (default: python3) with the packages that it
# has, and with those of the wheels in the folder that WHEELS names, which pip installs in a temporary folder. The report
# begins with the packages that are missing. SMOKE=1 runs everything briefly. LIMIT_S=590 ends what has not finished by
# then, so that a call that is cut off after ten minutes still has every part in its report. Without an accelerator,
# everything runs on the CPU in emulation, and the report says so.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
report="${1:-out/device_check.txt}"
python="${PYTHON:-python3}"
mkdir -p "$(dirname "$report")"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 COLUMNS=120
failed=0
# Files that contain this can have tests with the mark gpu: a parameter or fixture for the device, or the mark.
for_devices='(\(|, |^ +)(gpu|device)(: str)?[,)]|"gpu"\)|mark\.gpu'

step() { # PERCENT of the remaining time, COMMAND...
    local seconds=$(((${LIMIT_S:-3600} - SECONDS) * $1 / 100)) status=0
    shift
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
    # Interrupted once, pytest and the benchmarks print what they have found so far: in the foreground, timeout sends one signal.
    timeout --foreground --signal=INT --kill-after=30 "$((seconds > 1 ? seconds : 1))" env --default-signal=INT "$@" || status=$?
    if ((status == 124 || status == 137)); then printf '== ended after its %d s\n' "$seconds"; fi
    if ((status)); then failed=1 && printf '== failed: exit status %d\n' "$status"; fi
    return "$status"
}

main() {
    date -u
    git log -1 --format='commit %h of %cs' 2>/dev/null
    if [[ -n "${WHEELS:-}" ]]; then
        local site
        site="$(mktemp -d)"
        step 15 "$python" -m pip install --quiet --no-index --no-deps --no-compile --upgrade --target "$site" "$WHEELS"/*.whl
        PYTHONPATH="$PYTHONPATH:$site"
    fi
    step 10 "$python" -c '
import os, platform, re, sys, importlib.metadata, importlib.util, torch
found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
print(f"device: {found.type}" if found else "no device: emulation")
print(f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, {platform.platform()}")
print("CUDA", torch.version.cuda, "ROCm", torch.version.hip)
if found and found.type == "cuda":
    print(torch.cuda.get_device_name(), torch.cuda.get_device_capability(), torch.cuda.mem_get_info())
def is_missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except ModuleNotFoundError:
        return True
for name in ("triton", "torchvision", "nvidia.nvimgcodec", "nvidia.dali", "av", "soundfile", "scipy"):
    print(name, "is not installed" if is_missing(name) else "is installed")
known = "(nvidia-(nvimgcodec|nvjpeg|dali)|torch|triton|numpy|numba|llvmlite|av$|opencv)"
found = {(item.name.lower(), item.version) for item in importlib.metadata.distributions()}
print(*sorted("==".join(item) for item in found if re.match(known, item[0])))
required = ("cloudpickle", "cv2", "gast", "hypothesis", "ml_dtypes", "numba", "numpy", "PIL", "psutil", "pytest", "pytest_timeout", "rich", "simplejpeg")
missing = [name for name in required if is_missing(name)]
if missing:
    sys.exit("required, but not installed: " + ", ".join(missing))
'
    if command -v nvidia-smi >/dev/null; then step 5 nvidia-smi; fi
    if command -v rocm-smi >/dev/null; then step 5 rocm-smi; fi
    # Warnings of other versions of the packages are no failures here. A file that cannot be imported is one, and the
    # others run. Tests of memory run alone.
    local tests=("$python" -m pytest -q -m gpu -p no:cacheprovider -W default --timeout=120 --continue-on-collection-errors)
    local cores alone=tests/executor/test_on_device.py workers=()
    cores="$(getconf _NPROCESSORS_ONLN)"
    if "$python" -c 'import xdist' 2>/dev/null; then workers=(-n "$((cores < 8 ? cores : 8))"); fi
    local parallel=("${tests[@]}" ${workers[@]+"${workers[@]}"})
    # The tests of what runs only on devices come first, and the other tests last: they take the most time. Each worker
    # collects all tests of the files that it gets, so it gets those that can have tests for devices.
    local first=(tests/kernels/triton tests/operators/decoders/test_mixed.py tests/operators/decoders/test_mixed_cache.py) others=()
    if [[ -n "${SMOKE:-}" ]]; then
        first=(tests/kernels/triton/test_windows.py tests/operators/decoders/test_mixed.py)
    else
        mapfile -t others < <(grep -rlE --include='test_*.py' "$for_devices" tests | sort)
    fi
    step 15 "${tests[@]}" "$alone"
    step 25 "${parallel[@]}" "${first[@]}"
    local smoke=()
    if [[ -n "${SMOKE:-}" ]]; then smoke=(--smoke); fi
    local benchmark=("$python" -m benchmarks gpu --rounds 3 --seconds 1 ${smoke[@]+"${smoke[@]}"} --json "${report%.txt}.json")
    rm -f "${report%.txt}.json"
    step 55 "${benchmark[@]}"
    local status=$?
    # A measurement that leaves the device unusable (3), or ends the process, does not prevent the ones after it.
    for _ in 1 2; do
        case "$status" in 0 | 1 | 124 | 137) break ;; esac
        step 40 "${benchmark[@]}" --resume
        status=$?
    done
    # Videos decoded by the host, then by NVDEC.
    if command -v nvidia-smi >/dev/null && "$python" -c 'import av' 2>/dev/null; then
        for decoder in host cuda; do
            step 10 env "DALIFY_VIDEO_DECODER=$decoder" "$python" -m benchmarks video ${smoke[@]+"${smoke[@]}"}
        done
    fi
    # The thread curve: on few cores only to see that it runs.
    if [[ -n "${SMOKE:-}" ]] || ((cores >= 8)); then
        step 50 "$python" -m benchmarks scaling ${smoke[@]+"${smoke[@]}"} --only training --json "${report%.txt}-scaling.json"
    fi
    if ((${#others[@]})); then
        step 100 "${parallel[@]}" "${first[@]/#/--ignore=}" "--ignore=$alone" "${others[@]}"
    fi
    printf '\n== finished after %d s, %s\n' "$SECONDS" "$( ((failed)) && echo 'something failed' || echo 'all passed')"
    return "$failed"
}

main 2>&1 | tee "$report"
exit "${PIPESTATUS[0]}"
