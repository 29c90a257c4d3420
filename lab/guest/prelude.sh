# Comes before every script in a guest. Not sourced by anything else.
# run NAME COMMAND...: runs it; NAME.out, NAME.err and NAME.rc go to the shared folder.
# prove NAME OPTIONS...: runs `rtproof prove` so; also NAME.rtproof and NAME.html.
# cue NAME: tells the host that now is the time.
export PATH=/tmp/bin:$PATH HOME=/tmp
mkdir -p /tmp/bin /tmp/o
chmod 1777 /tmp
cp /host/bin/* /tmp/bin/
cp /host/bin/lab-plant /tmp/bin/multipathd
chmod 755 /tmp/bin/*
[ -d /host/root ] && cp -R /host/root/. /
cd /tmp
hostname lab

uptime_s() { cut -d' ' -f1 /proc/uptime; }

run() {
    name=$1
    shift
    began=$(uptime_s)
    "$@" >/tmp/o/$name.out 2>/tmp/o/$name.err
    rc=$?
    echo $rc >/tmp/o/$name.rc
    mv /tmp/o/$name.* /host/
    echo "GUEST-RAN $name rc=$rc up=$began..$(uptime_s)"
    return $rc
}

# Without kernel events: what is measured to the instruction must not have the recorder beside it.
prove() {
    name=$1
    shift
    run $name rtproof prove --no-trace -o /tmp/o/$name "$@"
}

# With them: spikes are explained.
traced() {
    name=$1
    shift
    run $name rtproof prove -o /tmp/o/$name "$@"
}

cue() { echo "GUEST-CUE $1"; }
