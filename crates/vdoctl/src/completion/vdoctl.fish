# Completion of vdoctl for fish: vdoctl completion fish | source
function __vdoctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    test (count $answer) -gt 0; or return
    set -l directive (string replace -r '^:' '' -- $answer[-1])
    set -l lead (string match -r -- '^--[^=]*=' "$current")
    set -e answer[-1]
    if test (count $answer) -eq 0; and test (math "floor($directive / 4) % 2") -eq 0
        __fish_complete_path "$current"
        return
    end
    for line in $answer
        printf '%s%s\n' "$lead" "$line"
    end
end
complete -c vdoctl -f -a '(__vdoctl_complete)'
