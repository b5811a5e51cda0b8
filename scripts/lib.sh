# Shared by the scripts beside it: packages, building, headings. Sourced from the project's top folder.

# What the build needs, by its name in Debian 12 and Ubuntu 24.04.
BUILD_PACKAGES=(cmake ninja-build g++ python3 libpython3-dev libssl-dev nlohmann-json3-dev libcli11-dev
                libgtest-dev libbenchmark-dev)
# What tests use where it is there; without them those tests would be skipped.
TEST_PACKAGES=(python3-numpy python3-pandas python3-matplotlib)

heading() { printf '\n=== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s ' "$package"
  done
}

# Installs what is not installed yet; as root or by sudo, never asking anything.
need_packages() {
  if ! command -v dpkg-query apt-get >/dev/null; then
    printf 'No apt here: this needs, by their Debian names: %s\n' "$*" >&2
    return 0
  fi
  local missing as_root=()
  read -ra missing <<<"$(missing_packages "$@")"
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null ||
      die "please install, as root: apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo -n)
  fi
  heading "Installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || printf 'The package lists could not be brought up to date; going on.\n' >&2
  "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null || die "could not install ${missing[*]}"
}

# As many compilers side by side as there are cores, and 1.5 GB of memory for each.
jobs_for_this_machine() {
  local cores memory_kb by_memory
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kb / 1500000))
  if ((by_memory < 1)); then by_memory=1; fi
  printf '%d' $((cores < by_memory ? cores : by_memory))
}

# build PRESET [TARGET...]
build() {
  local preset=$1 targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  heading "Building $preset"
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(jobs_for_this_machine)" "${targets[@]}"
}

# run_tests PRESET [CTEST OPTION...]: ctest's own output and summary, then what was skipped, and why.
run_tests() {
  local preset=$1 result=0
  shift
  ctest --preset "$preset" -j "$(nproc)" "$@" || result=1
  count_skips "build/$preset/Testing/Temporary/LastTest.log"
  return "$result"
}

# Of GoogleTest and of Python's unittest, which ctest takes for one test that passed.
count_skips() {
  awk '
    take_reason { reasons[$0]++; take_reason = 0 }
    /: Skipped$/ { take_reason = 1 }
    /^\[  SKIPPED \] [0-9]+ tests?, listed below/ { skipped += $4 }
    match($0, /^(OK|FAILED) \(.*skipped=[0-9]+/) { sub(/.*skipped=/, ""); by_unittest += $0 }
    END {
      printf "Skipped: %d\n", skipped + by_unittest
      for (reason in reasons) printf "  %d: %s\n", reasons[reason], reason
      if (by_unittest) printf "  %d: by Python tests, which say why when run with -v\n", by_unittest
    }' "$1"
}
