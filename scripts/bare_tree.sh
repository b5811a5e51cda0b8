# A minimal tree of a distribution, as a bare machine or as a container's base image. Sourced by the
# scripts beside it, after lib.sh; needs root, debootstrap and an apt that is configured.

this_suite() {
  . /etc/os-release
  printf '%s' "$VERSION_CODENAME"
}

# make_bare_tree SUITE DIRECTORY: from the mirrors that this machine itself uses for the suite, with its
# apt's proxy and its resolver, so that packages can be installed in it.
make_bare_tree() {
  local suite=$1 tree=$2 sources mirror file packages=bash
  command -v debootstrap >/dev/null || die "needs debootstrap"
  # "URI suite component" each.
  sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    awk -v suite="$suite" '$2 == suite || index($2, suite "-") == 1' | grep -E ' (main|universe)$' | sort -u)
  mirror=$(awk -v suite="$suite" '$2 == suite {print $1; exit}' <<<"$sources")
  [[ -n $mirror ]] || die "this machine's apt sources have no mirror of $suite"
  chmod 755 "$tree"  # it becomes "/", and calls run as other users
  [[ $mirror != https:* ]] || packages+=,ca-certificates
  debootstrap --variant=minbase --include="$packages" "$suite" "$tree" "$mirror"
  sed 's/^/deb /' <<<"$sources" >"$tree/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until)' >"$tree/etc/apt/apt.conf.d/99host" || true
  for file in /etc/resolv.conf /etc/hosts; do
    [[ ! -e $file ]] || cp -L "$file" "$tree$file"
  done
}
