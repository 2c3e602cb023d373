/*
 * Reports, and has every write to a file fail from some moment on.  A line on stdin is an order, a line on stdout
 * its answer.
 *
 *   api N TAG    N api records, item id TAG << 40 | n
 *   fail ERRNO   from now on, writes of all threads to anything but the standard streams end with that error
 */
#include "orders.h"
#include "reports.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define IF_CALL(number, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), (then), 0)

static int fail_writes(unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        IF_CALL(SYS_write, 5),
        IF_CALL(SYS_pwrite64, 4),
        IF_CALL(SYS_writev, 3),
        IF_CALL(SYS_pwritev, 2),
        IF_CALL(SYS_pwritev2, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        /* The low half of the first argument, the descriptor; both machines have it first. */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return errno;
    }
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    return result == 0 ? 0 : result > 0 ? -1 : errno;
}

int main(void)
{
    static Order order;
    say_ready();
    while (next_order(&order)) {
        if (is_order(&order, "api")) {
            printf("%d\n", report_numbers(order.first, order.second));
        } else if (is_order(&order, "fail")) {
            printf("%d\n", fail_writes((unsigned)order.first));
        } else {
            printf("unknown order %s\n", order.word);
        }
    }
    return 0;
}
