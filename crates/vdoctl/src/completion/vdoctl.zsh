#compdef vdoctl
# Completion of vdoctl for zsh: source <(vdoctl completion zsh), or as a file _vdoctl in a folder of $fpath
_vdoctl() {
    local line value about
    local -a answer found options
    local -i directive=4
    answer=("${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ ${answer[-1]} == :* ]]; then
        directive=${answer[-1]#:}
        answer[-1]=()
    fi
    [[ ${words[CURRENT]} == -*=* ]] && compset -P '*='
    for line in $answer; do
        value=${line%%$'\t'*}
        about=${line#"$value"}
        found+=("${value//:/\\:}:${about#$'\t'}")
    done
    ((directive & 2)) && options+=(-S '')
    if ((${#found})); then
        _describe -t values 'value' found $options
    elif ! ((directive & 4)); then
        _files
    fi
}
if [[ ${funcstack[1]} == _vdoctl ]]; then
    _vdoctl "$@"
else
    compdef _vdoctl vdoctl
fi
