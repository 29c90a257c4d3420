
# with LINE: the line's words without those that go, and the new ones that it lacks.
with() (
    set -f
    kept=
    for word in $1; do
        case " $words " in *" $word "*) kept="${kept:+$kept }$word"; continue ;; esac
        case "$word" in
@REMOVED@
        *) kept="${kept:+$kept }$word" ;;
        esac
    done
    for word in $words; do
        case " $kept " in *" $word "*) ;; *) kept="${kept:+$kept }$word" ;; esac
    done
    printf '%s' "$kept"
)

# edit FILE FIRST...: lines that begin with one of these words; none: every line that holds one.
found=
edit() {
    file=$1
    shift
    [ -f "$file" ] || return 0
    found=1
    while IFS= read -r line || [ -n "$line" ]; do
        first=$(set -f; set -- $line; printf '%s' "${1:-}")
        indent=${line%%[! 	]*}
        for wanted in "$@"; do
            [ "$wanted" = "$first" ] || { [ "$wanted" = any ] && [ -n "$first" ]; } || continue
            line=$indent$(with "$line")
            break
        done
        printf '%s\n' "$line"
    done <"$file" >"$file.rtproof"
    cat "$file.rtproof" >"$file"
    rm -f "$file.rtproof"
}

for place in "$root/boot" "${BINARIES_DIR:-$root/boot}"; do
    edit "$place/grub/grub.cfg" linux
    edit "$place/efi-part/EFI/BOOT/grub.cfg" linux
    edit "$place/extlinux/extlinux.conf" append APPEND
    edit "$place/rpi-firmware/cmdline.txt" any
done
[ -n "$found" ] || echo "rtproof: no boot loader's file here; add to the command line: $words" >&2
