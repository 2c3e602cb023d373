# bash completion of msprof. Made from the tables of options by `make manual`; do not edit.

# Words that begin like the current one; behind an equals sign no blank.
_msprof_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
    [[ ${COMPREPLY[*]-} == *= ]] && compopt -o nospace 2>/dev/null
}

_msprof() {
    local cur=${COMP_WORDS[COMP_CWORD]} option= verb= i=1 rest
    COMPREPLY=()
    while ((i < COMP_CWORD)); do
        case ${COMP_WORDS[i]} in
            -h | -V | --all | --force | --help | --json | --version | --*=*) ;;
            --) verb=program; break ;;
            # The shell cuts --name=value at the sign.
            --*)
                option=${COMP_WORDS[i]}
                [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 1))
                ((i += 1))
                ((i < COMP_CWORD)) && option=
                ;;
            *)
                if ((i == 1)); then
                    case ${COMP_WORDS[i]} in
                        list | status | start | stop | record | doctor | summary | view | recover) verb=${COMP_WORDS[i]} ;;
                    esac
                fi
                # Behind a verb there is no program.
                [[ -z $verb ]] && verb=program && break
                ;;
        esac
        ((i += 1))
    done
    [[ $cur == = ]] && cur=
    if [[ -z $option && $verb != program && $cur == --*=* ]]; then
        option=${cur%%=*}
        cur=${cur#*=}
    fi
    rest=${cur##*,}
    case $verb:$option in
        view:--output) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        *:--dynamic) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--inject) mapfile -t COMPREPLY < <(compgen -W "both preload libprofapi none" -- "$cur") ;;
        *:--runtime-api) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--model-execution) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--aicpu) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--ascendcl) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--task-time) mapfile -t COMPREPLY < <(compgen -W "on off l0 l1 l2 l3" -- "$cur") ;;
        *:--ge-api) mapfile -t COMPREPLY < <(compgen -W "off l0 l1" -- "$cur") ;;
        *:--hccl) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--task-memory) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--task-tsfw) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--l2) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--instr-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--msproftx) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--ai-core) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--aic-mode) mapfile -t COMPREPLY < <(compgen -W "task-based sample-based" -- "$cur") ;;
        *:--aic-metrics) mapfile -t COMPREPLY < <(compgen -W "PipeUtilization PipeUtilizationExct ArithmeticUtilization Memory MemoryL0 MemoryUB MemoryAccess L2Cache ResourceConflictRatio PipelineExecuteUtilization" -- "$cur") ;;
        *:--ai-vector-core) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--aiv-mode) mapfile -t COMPREPLY < <(compgen -W "task-based sample-based" -- "$cur") ;;
        *:--aiv-metrics) mapfile -t COMPREPLY < <(compgen -W "PipeUtilization PipeUtilizationExct ArithmeticUtilization Memory MemoryL0 MemoryUB MemoryAccess L2Cache ResourceConflictRatio PipelineExecuteUtilization" -- "$cur") ;;
        *:--aicore-shape) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--aic-scale) mapfile -t COMPREPLY < <(compgen -W "all partial" -- "$cur") ;;
        *:--task-block) mapfile -t COMPREPLY < <(compgen -W "on off all" -- "$cur") ;;
        *:--sys-hardware-mem) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--llc-profiling) mapfile -t COMPREPLY < <(compgen -W "read write" -- "$cur") ;;
        *:--sys-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--sys-pid-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--sys-io-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--sys-interconnection-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--dvpp-profiling) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--host-sys) mapfile -t COMPREPLY < <(compgen -P "${cur%"$rest"}" -W "cpu mem disk network osrt" -- "$rest") ;;
        *:--host-sys-usage) mapfile -t COMPREPLY < <(compgen -P "${cur%"$rest"}" -W "cpu mem" -- "$rest") ;;
        *:--export) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--type) mapfile -t COMPREPLY < <(compgen -W "text db" -- "$cur") ;;
        *:--summary-format) mapfile -t COMPREPLY < <(compgen -W "csv json" -- "$cur") ;;
        *:--clear) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$cur") ;;
        *:--output) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        *:--agent-lib | *:--reports) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        *:--pid) mapfile -t COMPREPLY < <(compgen -P "${cur%"$rest"}" -W "$(cd /proc && echo [0-9]*)" -- "$rest") ;;
        *:?*) ;;
        list:) _msprof_words "--all --json --help" "$cur" ;;
        status:) _msprof_words "--pid= --json --help" "$cur" ;;
        start:) _msprof_words "--pid= --max-duration= --json --output= --storage-limit= --runtime-api= --model-execution= --aicpu= --ascendcl= --task-time= --ge-api= --hccl= --task-memory= --task-tsfw= --l2= --instr-profiling= --msproftx= --ai-core= --aic-mode= --aic-freq= --aic-metrics= --ai-vector-core= --aiv-mode= --aiv-freq= --aiv-metrics= --aicore-shape= --aic-scale= --task-block= --instr-profiling-freq= --sys-hardware-mem= --sys-hardware-mem-freq= --llc-profiling= --sys-profiling= --sys-sampling-freq= --sys-pid-profiling= --sys-pid-sampling-freq= --sys-cpu-freq= --sys-io-profiling= --sys-io-sampling-freq= --sys-interconnection-profiling= --sys-interconnection-freq= --sys-mem-serviceflow= --dvpp-profiling= --dvpp-freq= --host-sys= --host-sys-pid= --host-sys-usage= --host-sys-usage-freq= --mstx-domain-include= --mstx-domain-exclude= --help" "$cur" ;;
        stop:) _msprof_words "--pid= --json --help" "$cur" ;;
        record:) _msprof_words "--pid= --duration= --json --output= --storage-limit= --runtime-api= --model-execution= --aicpu= --ascendcl= --task-time= --ge-api= --hccl= --task-memory= --task-tsfw= --l2= --instr-profiling= --msproftx= --ai-core= --aic-mode= --aic-freq= --aic-metrics= --ai-vector-core= --aiv-mode= --aiv-freq= --aiv-metrics= --aicore-shape= --aic-scale= --task-block= --instr-profiling-freq= --sys-hardware-mem= --sys-hardware-mem-freq= --llc-profiling= --sys-profiling= --sys-sampling-freq= --sys-pid-profiling= --sys-pid-sampling-freq= --sys-cpu-freq= --sys-io-profiling= --sys-io-sampling-freq= --sys-interconnection-profiling= --sys-interconnection-freq= --sys-mem-serviceflow= --dvpp-profiling= --dvpp-freq= --host-sys= --host-sys-pid= --host-sys-usage= --host-sys-usage-freq= --mstx-domain-include= --mstx-domain-exclude= --help" "$cur" ;;
        doctor:) _msprof_words "--pid= --json --help" "$cur" ;;
        summary:)
            if [[ $cur == -* ]]; then
                _msprof_words "--json --help" "$cur"
            else
                compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            fi
            ;;
        view:)
            if [[ $cur == -* ]]; then
                _msprof_words "--output= --limit= --help" "$cur"
            else
                compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            fi
            ;;
        recover:)
            if [[ $cur == -* ]]; then
                _msprof_words "--force --json --help" "$cur"
            else
                compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            fi
            ;;
        program:*) compopt -o default 2>/dev/null ;;
        :)
            if [[ $cur == -* ]]; then
                _msprof_words "--dynamic= --pid= --application= --environment= --inject= --agent-lib= --output= --storage-limit= --runtime-api= --model-execution= --aicpu= --ascendcl= --task-time= --ge-api= --hccl= --task-memory= --task-tsfw= --l2= --instr-profiling= --msproftx= --ai-core= --aic-mode= --aic-freq= --aic-metrics= --ai-vector-core= --aiv-mode= --aiv-freq= --aiv-metrics= --aicore-shape= --aic-scale= --task-block= --instr-profiling-freq= --sys-hardware-mem= --sys-hardware-mem-freq= --llc-profiling= --sys-profiling= --sys-sampling-freq= --sys-pid-profiling= --sys-pid-sampling-freq= --sys-cpu-freq= --sys-io-profiling= --sys-io-sampling-freq= --sys-interconnection-profiling= --sys-interconnection-freq= --sys-mem-serviceflow= --dvpp-profiling= --dvpp-freq= --host-sys= --host-sys-pid= --host-sys-usage= --host-sys-usage-freq= --mstx-domain-include= --mstx-domain-exclude= --export= --type= --summary-format= --reports= --clear= --help --version" "$cur"
            else
                compopt -o filenames 2>/dev/null
                ((COMP_CWORD == 1)) && mapfile -t COMPREPLY < <(compgen -W "list status start stop record doctor summary view recover" -- "$cur")
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
            fi
            ;;
    esac
}
complete -F _msprof msprof
