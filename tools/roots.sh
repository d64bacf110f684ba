# Roots of Debian that mmdebstrap makes from this machine's own package sources; for tools/fresh and
# tools/arm64, which include it.

# Where this machine's apt gets Debian from, with the release replaced. Nothing on other systems:
# there mmdebstrap's own default serves.
sources() {
	local own
	own=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || return 0
	apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -n -E "s/^(deb [^ ]+) $own(|-updates|-security) main$/\1 $1\2 main/p" | sort -u
}

# How this machine's apt reaches its sources: the root's apt goes the same way.
apt_options() {
	apt-config dump --no-empty --format '%f "%v";%n' Acquire |
		grep -E '^Acquire::(Check-(Valid-Until|Date)|Retries|https?::(Proxy|CaInfo)[^ ]*) ' |
		sed 's/^/--aptopt=/'
}

# make_root SUITE FOLDER PACKAGES [OPTION ...]: with nothing more than these packages, unless it is
# there. OPTIONs are mmdebstrap's.
make_root() {
	local suite=$1 root=$2 packages=$3 options
	shift 3
	[ ! -e "$root" ] || return 0
	rm -rf "$root.new"
	mapfile -t options < <(apt_options)
	sources "$suite" | mmdebstrap --variant=minbase --include="$packages" "${options[@]}" \
		--dpkgopt=force-unsafe-io "$@" "$suite" "$root.new" $([ -n "$(sources "$suite")" ] && echo -) || return 1
	mv "$root.new" "$root"
}
