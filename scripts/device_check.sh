#!/usr/bin/env bash
# Tests and measures dalify on the accelerator of this machine, and writes one report: scripts/device_check.sh [REPORT]
# Takes a few minutes. Needs no network: it uses the Python that PYTHON names (default: python3) with the packages that it
# has, of which torch, numba and pytest are required; wheels in the folder that WHEELS names are added to its path.
# SMOKE=1 runs everything briefly. LIMIT_S=590 ends what has not finished by then, so that a call that is cut off after ten
# minutes still has every part in its report. Without an accelerator, everything runs on the CPU in emulation, and the report says so.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
report="${1:-out/device_check.txt}"
python="${PYTHON:-python3}"
mkdir -p "$(dirname "$report")"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" COLUMNS=120
for wheel in "${WHEELS:-/nonexistent}"/*.whl; do # wheels of pure Python can be imported as they are
    if [[ -e "$wheel" ]]; then PYTHONPATH="$PYTHONPATH:$wheel"; fi
done
failed=0

step() { # PERCENT of the remaining time, COMMAND...
    local seconds=$(((${LIMIT_S:-3600} - SECONDS) * $1 / 100)) status=0
    shift
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
    timeout --kill-after=5 "$((seconds > 1 ? seconds : 1))" "$@" || status=$?
    if ((status == 124 || status == 137)); then printf '== ended after its %d s\n' "$seconds"; fi
    if ((status)); then failed=1 && printf '== failed: exit status %d\n' "$status"; fi
}

main() {
    date -u
    step 10 "$python" -c '
import os, platform, sys, importlib.util, torch
found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
print(f"device: {found.type}" if found else "no device: emulation")
print(f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, {platform.platform()}")
print("CUDA", torch.version.cuda, "ROCm", torch.version.hip)
if found and found.type == "cuda":
    print(torch.cuda.get_device_name(), torch.cuda.get_device_capability(), torch.cuda.mem_get_info())
for name in ("triton", "torchvision", "nvidia.nvimgcodec", "nvidia.dali"):
    try:
        present = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        present = False
    print(name, "is installed" if present else "is not installed")
'
    if command -v nvidia-smi >/dev/null; then step 5 nvidia-smi; fi
    if command -v rocm-smi >/dev/null; then step 5 rocm-smi; fi
    local selection=(tests)
    if [[ -n "${SMOKE:-}" ]]; then
        selection=(tests/kernels/triton/test_windows.py tests/executor/test_on_device.py tests/operators/decoders/test_mixed.py)
    fi
    step 50 "$python" -m pytest -q -m gpu -p no:cacheprovider "${selection[@]}"
    local smoke=()
    if [[ -n "${SMOKE:-}" ]]; then smoke=(--smoke); fi
    step 65 "$python" -m benchmarks gpu ${smoke[@]+"${smoke[@]}"} --json "${report%.txt}.json"
    # The thread curve: on few cores only to see that it runs.
    if [[ -n "${SMOKE:-}" ]] || (($(getconf _NPROCESSORS_ONLN) >= 8)); then
        step 100 "$python" -m benchmarks scaling ${smoke[@]+"${smoke[@]}"} --only training --json "${report%.txt}-scaling.json"
    fi
    printf '\n== finished after %d s, %s\n' "$SECONDS" "$( ((failed)) && echo 'something failed' || echo 'all passed')"
    return "$failed"
}

main 2>&1 | tee "$report"
exit "${PIPESTATUS[0]}"
