#!/usr/bin/env bash
# Packs an environment for a machine that reaches no package registry: the wheels of a lock file, cut into parts of a size that
# the way there can carry, with their sums and a script that puts them together again.
#
#   requirements/pack.sh LOCK DIR [SIZE]     DIR/part.000, part.001, … (SIZE each, default 500M), SHA256SUMS, install.sh
#
# On the other machine, with all of DIR in one folder:  bash install.sh VENV
#
# PYTHON_VERSION  of the other machine, default 3.12; it must have that Python and be Linux x86-64
# LEAVE_OUT       distributions that it has already, e.g. "torch triton nvidia-cublas-cu12"
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
lock=$1 size=${3:-500M} version=${PYTHON_VERSION:-3.12} left_out=" ${LEAVE_OUT:-} "
[ -f "$lock" ] || { echo "$lock does not exist" >&2; exit 2; }
mkdir -p "$2"
out=$(cd "$2" && pwd)
[ -z "$(ls "$out")" ] || { echo "$out is not empty; parts of two packings must not mix" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/wheels"
python=${PYTHON:-python3.11}

platforms=(--platform any --platform manylinux1_x86_64 --platform manylinux2010_x86_64 --platform manylinux2014_x86_64)
for minor in $(seq 5 39); do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
target=(--python-version "$version" --implementation cp --abi "cp${version/./}" --abi abi3 --abi none "${platforms[@]}")

while read -r requirement; do
  [[ $left_out != *" ${requirement%%==*} "* ]] || continue
  "$python" -m pip download -q --no-deps --only-binary=:all: "${target[@]}" -d "$work/wheels" "$requirement" 2> "$work/why" ||
    "$python" -m pip wheel -q --no-deps -w "$work/wheels" "$requirement" ||  # published as source only
    { echo "no wheel of $requirement for Python $version:" >&2; cat "$work/why" >&2; exit 1; }
done < <(sed 's/[[:space:]]*#.*//; /^$/d' "$lock")

for wheel in "$work"/wheels/*.whl; do  # one that was built here must not be for here only
  case $wheel in *-none-any.whl | *linux*_x86_64.whl) ;; *) echo "$(basename "$wheel") fits no other machine" >&2; exit 1 ;; esac
  case $wheel in *-linux_x86_64.whl) echo "$(basename "$wheel") was built for this machine" >&2; exit 1 ;; esac
done

tar c -C "$work" wheels | split -a 3 -b "$size" -d - "$out/part."
cat > "$out/install.sh" <<INSTALL
#!/usr/bin/env bash
# install.sh VENV: makes an environment of Python $version from the parts beside this script.
set -euo pipefail
[ \$# -eq 1 ] || { echo "usage: bash install.sh VENV" >&2; exit 2; }
venv=\$1
parts=\$(cd "\$(dirname "\$0")" && pwd)
(cd "\$parts" && sha256sum --quiet --check SHA256SUMS >&2)
work=\$(mktemp -d)
trap 'rm -rf "\$work"' EXIT
cat "\$parts"/part.* | tar x -C "\$work"
"\${PYTHON:-python$version}" -m venv "\$venv"
"\$venv/bin/python" -m pip install -q --no-index --no-deps --no-cache-dir "\$work"/wheels/*.whl
INSTALL
(cd "$out" && sha256sum part.* > SHA256SUMS)
echo "$(ls "$work/wheels" | wc -l) wheels in $(ls "$out"/part.* | wc -l) parts of at most $size in $out"
