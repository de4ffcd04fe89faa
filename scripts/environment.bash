# Shared by scripts/test and scripts/check: sets up the environment of the tests and puts it on PATH. The caller has set
# `root` and `cache`, is in `root`, and has read scripts/bootstrap.bash.
# shellcheck shell=bash
# shellcheck source=scripts/bootstrap.bash
: "${root:?}" "${cache:?}"

python=$(require_python)

# Two environments: one with the dependencies, shared by all checkouts, and on top of it a small one for this checkout,
# with the project in editable mode. Two checkouts can be tested at once.
requirements=$("$python" - <<'PY'
import tomllib

with open("pyproject.toml", "rb") as file:
    config = tomllib.load(file)
project = config["project"]
print(*config["build-system"]["requires"], *project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")
PY
)
alone=openai-whisper==20250625 # without its requirements; pyproject.toml says why
key=$({ "$python" -VV; echo "$python"; echo "$requirements" "$alone"; } | digest)
base=$cache/test-base-$key
metadata=$(cat pyproject.toml; grep '^__version__' package/tallow/__init__.py)
env=$cache/test-env-$(echo "$root $key $metadata" | digest)

# Two checkouts may need the same environment at once: the second one waits until it is complete.
exec 9>"$cache/test-base.lock"
"$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' # macOS has no flock(1); this shell keeps the lock
if [ ! -e "$base/complete" ]; then
  say "installing the test dependencies into $base"
  rm -rf "$base"
  "$python" -m venv "$base"
  # Python looks for bytecode in PYTHONPYCACHEPREFIX alone, so pip need not compile 18,000 files.
  install() { "$base/bin/pip" install -q --disable-pip-version-check --no-compile "$@" >&2; }
  # torch first: it is by far the largest, and an interrupted setup resumes from pip's cache
  install "$(grep '^torch==' <<<"$requirements")"
  install -r /dev/stdin <<<"$requirements"
  install --no-deps "$alone"
  touch "$base/complete"
fi
exec 9>&-

if [ ! -e "$env/complete" ]; then
  say "installing tallow into $env"
  rm -rf "$env"
  "$python" -m venv --without-pip "$env"
  packages() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
  packages "$base" >"$(packages "$env")/base.pth"
  "$base/bin/pip" --python "$env/bin/python" install -q --disable-pip-version-check \
    --no-deps --no-build-isolation --editable . >&2
  touch "$env/complete"
fi
export PATH=$env/bin:$base/bin:$PATH
# Keep bytecode with the environment, for the many processes that tests start.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$env/bytecode
python build_kernels.py >/dev/null # quick unless a source has changed

# Remove the environments of old requirements and deleted checkouts.
touch "$base" "$env"
find "$cache" -maxdepth 1 -name 'test-*' -mtime +30 -exec rm -rf {} +
