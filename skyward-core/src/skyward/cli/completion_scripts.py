"""What shells run to complete words of `sky`: each asks `sky __complete`, which prints candidates line by line."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SCRIPTS"]

_BASH = r"""# Completion of sky for bash. To have it in every shell, write into ~/.bashrc:
#   source <(sky completion bash)
_skyward_complete() {
    local line=${COMP_LINE:0:COMP_POINT} found breaks cut=
    local -a words
    read -r -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local current=${words[${#words[@]}-1]}
    # Bash replaces only what follows the last of these characters.
    breaks=${COMP_WORDBREAKS//[^:=]/}
    [[ -n $breaks && $current == *[$breaks]* ]] && cut=${current%"${current##*[$breaks]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r found _; do
        if [[ $found == :files ]]; then
            compopt -o default 2> /dev/null
        else
            COMPREPLY+=("${found#"$cut"}")
        fi
    done < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2> /dev/null)
}
complete -F _skyward_complete sky skyward
"""

_ZSH = r"""#compdef sky skyward
# Completion of sky for zsh. To have it in every shell, write into ~/.zshrc:
#   source <(sky completion zsh)
_skyward_complete() {
    local line
    local -a found described
    for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}"; do
        [[ -z $line ]] && continue
        if [[ $line == :files* ]]; then
            _files
            continue
        fi
        found+=("${line%%$'\t'*}")
        described+=("${line/$'\t'/  }")
    done
    (( $#found )) && compadd -l -d described -a found
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D }
compdef _skyward_complete sky skyward
"""

_FISH = r"""# Completion of sky for fish. To have it in every shell:
#   sky completion fish > ~/.config/fish/completions/sky.fish
function __skyward_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        if string match -q ':files*' -- $line
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end
complete -c sky -f -a '(__skyward_complete)'
complete -c skyward -f -a '(__skyward_complete)'
"""

SCRIPTS: Mapping[str, str] = {"bash": _BASH, "fish": _FISH, "zsh": _ZSH}
"""The script of each shell."""
