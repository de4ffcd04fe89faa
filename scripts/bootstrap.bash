# Shared by scripts/test, scripts/check and scripts/demo: messages, and installing Python, Debian packages and a browser.
# Works with bash 3.2 of macOS, where "${array[@]}" of an empty array is an unset variable.
# shellcheck shell=bash

say() { printf '%s: %s\n' "scripts/$(basename "$0")" "$*" >&2; }
die() { say "$@"; exit 1; }

# macOS has shasum instead of sha256sum.
sha256sum=(sha256sum)
command -v sha256sum >/dev/null || sha256sum=(shasum -a 256)

# digest: print the first twelve digits of the SHA-256 of stdin.
digest() { "${sha256sum[@]}" | cut -c1-12; }

# apt_install PACKAGE...: install with apt-get, as root or through sudo.
apt_install() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "install these first, as root: apt-get install $*"
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null || die "install these first: $*"
  say "installing $*"
  ${as_root[@]+"${as_root[@]}"} apt-get -qq update >&2
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >&2
}

# has_apt_browsers: whether apt-get installs browsers, as on Debian. Ubuntu's packages only install snaps, which neither a
# container nor Playwright can use.
has_apt_browsers() { command -v apt-get >/dev/null && ! grep -q '^ID=ubuntu' /etc/os-release; }

# find_python: print the path of a Python >= 3.11 that can create environments.
find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      "$name" -c 'import sys; print(sys.executable)'
      return
    fi
  done
  return 1
}

# require_python: the same, but install Python if it is missing.
require_python() {
  find_python && return
  apt_install python3 python3-venv
  find_python || die "Python 3.11 or newer with venv is needed"
}
