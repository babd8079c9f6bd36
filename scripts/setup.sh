#!/usr/bin/env -S bash -e
# Installs what building and testing need on Debian 12: packages that are missing (as root or by
# sudo) and the pinned math libraries in build/deps. Quick and silent when all is there.
set -o errexit -o nounset -o pipefail
cd "$(dirname "$0")/.."

packages=(
  binutils clang-format-14 cmake g++ git libgomp1 make ninja-build python3
  libcli11-dev libgtest-dev librandom123-dev nlohmann-json3-dev zlib1g-dev
  dataset-fashion-mnist
)
# Any Python that has pip can fetch the math libraries; Debian's is installed when none has.
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
  packages+=(python3-pip)
  python=/usr/bin/python3
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [ "$status" != installed ]; then
    missing+=("$package")
  fi
done

if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    as_root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

"$python" scripts/get_deps.py build/deps
