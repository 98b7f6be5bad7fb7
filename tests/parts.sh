#!/bin/sh
# What tests want beside the packages of Python: brokers, PostgreSQL, a browser, Prometheus' tool, packages of npm. What
# is there already costs nothing; what cannot be had is told here, and by the test that is skipped for it. It needs
# root for Debian's packages alone, ends by itself after some minutes, and never with an error.
set -u
part=
trap 'rm -rf "$part"; exit 0' TERM INT
cache=${LEVADA_CACHE:-$HOME/.cache/levada}
mkdir -p "$cache"

missing=
wants() {  # wants COMMAND PACKAGE...
    command -v "$1" >/dev/null || { shift; missing="$missing $*"; }
}
wants mosquitto mosquitto
wants mosquitto_pub mosquitto-clients
wants chromium chromium
wants curl curl
wants node nodejs
wants npm npm
wants mvn maven
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing="$missing postgresql"
tools=
command -v promtool >/dev/null || [ -x "$cache/promtool" ] || tools="prometheus:usr/bin/promtool"
[ -x /usr/sbin/nginx ] || [ -x "$cache/nginx" ] || tools="$tools nginx:usr/sbin/nginx"

debian() {
    command -v apt-get >/dev/null || { echo "There is no apt-get for:$missing $tools"; return; }
    [ "$(id -u)" = 0 ] && timeout 60 apt-get update -qq
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive timeout 240 apt-get install -qq -y --no-install-recommends $missing >/dev/null \
            || echo "These are not here:$missing"
    fi
    for tool in $tools; do program "${tool%:*}" "${tool#*:}" || echo "$tool is not here."; done
}

program() {  # program PACKAGE PATH: the program alone, without the server that its package would start
    folder=$(mktemp -d) && (
        cd "$folder" && timeout 60 apt-get download -qq "$1" \
            && dpkg-deb --fsys-tarfile "$1"_*.deb | tar -x "./$2" \
            && mv "$2" "$cache/"
    )
    found=$?
    rm -rf "$folder"
    return $found
}

npm_packages() {  # npm_packages NAME@VERSION... into the folder in which tests/support/npm_packages.py looks
    folder=$cache/npm-$(echo "$*" | tr ' /' '--')
    [ -d "$folder" ] && return
    command -v npm >/dev/null || { echo "There is no npm for $*."; return 1; }
    part=$folder.$$
    mkdir "$part" && (
        cd "$part" && echo '{}' >package.json \
            && timeout 200 npm install --no-audit --no-fund --ignore-scripts --fetch-retries=1 --loglevel=error "$@" >/dev/null
    ) && mv "$part" "$folder"
    found=$?
    rm -rf "$part"
    [ $found = 0 ] || echo "npm does not give $*."
    return $found
}

[ -z "$missing$tools" ] || debian
npm_packages eventsource@3.0.7 && npm_packages rsp-js@1.3.5 ws@8.18.0 && npm_packages @comunica/query-sparql@4.5.0
# the editor of the server's page, to be compared by tests/integration/server/test_page.py
npm_packages @codemirror/autocomplete@6.20.4 @codemirror/commands@6.11.1 @codemirror/language@6.13.1 @codemirror/lint@6.9.8 \
    @codemirror/state@6.7.6 @codemirror/streamparser@6.0.0 @codemirror/view@6.43.15
npm_packages @lezer/common@1.5.5 @lezer/highlight@1.2.5 @marijn/find-cluster-break@1.0.4 crelt@1.0.7 style-mod@4.1.5 w3c-keyname@2.2.8
exit 0
