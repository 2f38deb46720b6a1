#!/bin/bash
# The entry of the image: what the interop runner asks for, in the words of hq-quipu.
#
# ROLE is client or server, TESTCASE the case, REQUESTS the URLs of a client, separated by blanks. CLIENT_PARAMS and
# SERVER_PARAMS are options of hq-quipu. Ends with 127 if the case is not supported. The other variables are for runs
# outside of a container.
set -euo pipefail

program=${QUIPU_PROGRAM:-hq-quipu}
www=${WWW:-/www} downloads=${DOWNLOADS:-/downloads} certs=${CERTS:-/certs}

# Of the image's base; absent outside of the runner.
[ ! -x /setup.sh ] || /setup.sh

# These are about the network between the ends, and for an end they are transfers.
case ${TESTCASE:-} in
    longrtt | blackhole | amplificationlimit | transferloss | transfercorruption | rebind-port | rebind-addr | ipv6 | \
        goodput | crosstraffic) case=transfer ;;
    handshakeloss | handshakecorruption) case=multiconnect ;;
    *) case=${TESTCASE:-} ;;
esac

case ${ROLE:-} in
    client)
        [ ! -x /wait-for-it.sh ] || /wait-for-it.sh sim:57832 -s -t 30
        read -r -a urls <<<"${REQUESTS:-}"
        read -r -a options <<<"${CLIENT_PARAMS:-}"
        exec "$program" client --case "$case" --ca "$certs/ca.pem" --downloads "$downloads" "${options[@]}" "${urls[@]}"
        ;;
    server)
        read -r -a options <<<"${SERVER_PARAMS:-}"
        # The client of that case is asked for a transfer: what makes it move is that the server would rather be reached
        # elsewhere.
        [ "$case" != connectionmigration ] || options+=(--preferred "${PREFERRED:-4433}")
        exec "$program" server --case "$case" --listen "${LISTEN:-[::]:443}" --cert "$certs/cert.pem" \
            --key "$certs/priv.key" --www "$www" "${options[@]}"
        ;;
    *)
        printf 'ROLE is %s, expected client or server\n' "${ROLE:-empty}" >&2
        exit 1
        ;;
esac
