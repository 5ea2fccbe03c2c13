# Completion of vdoctl for bash: source <(vdoctl completion bash)
_vdoctl() {
    local line=${COMP_LINE:0:COMP_POINT} current strip lead directive value
    local -a words answer
    # Bash breaks words at = and :, vdoctl does not.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    mapfile -t answer < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    ((${#answer[@]})) || return
    directive=${answer[-1]#:}
    unset 'answer[-1]'
    current=${words[-1]}
    [[ $current == -*=* ]] && current=${current#*=}
    strip=${current##*[=:]}
    lead=${current%"$strip"}
    for value in "${answer[@]}"; do
        value=${value%%$'\t'*}
        COMPREPLY+=("${value#"$lead"}")
    done
    ((directive & 2)) && compopt -o nospace 2>/dev/null
    ((${#COMPREPLY[@]} == 0 && !(directive & 4))) && compopt -o default 2>/dev/null
    return 0
}
complete -F _vdoctl vdoctl
