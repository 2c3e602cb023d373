/*
 * Named ranges of one's own, captured by the program itself.
 *
 *   own_ranges <output directory>
 *
 *   cc own_ranges.c -lmsprof_agent -lm -o own_ranges
 */
#include <msprof_agent.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 10, FEATURES = 50000, PATH_SIZE = 4096 };

static double batch[FEATURES];
static double weights[FEATURES];

static void load_batch(int step)
{
    for (int i = 0; i < FEATURES; i++) {
        batch[i] = sin(0.001 * i + step);
    }
}

static double forward(void)
{
    double sum = 0.0;
    for (int i = 0; i < FEATURES; i++) {
        sum += weights[i] * batch[i];
    }
    return tanh(sum);
}

static void backward(double error)
{
    for (int i = 0; i < FEATURES; i++) {
        weights[i] -= 1e-5 * error * batch[i];
    }
}

/* Prints why the last call failed and ends the program. */
static void check(int32_t result, const char *call)
{
    if (result == 0) {
        return;
    }
    char text[512];
    msprof_agent_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", call, text);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s <output directory>\n", argv[0]);
        return 2;
    }
    printf("agent %s\n", msprof_agent_version());
    check(msprof_agent_start(NULL, argv[1]), "msprof_agent_start");

    double loss = 0.0;
    for (int step = 0; step < STEPS; step++) {
        check(msprof_agent_push("load batch"), "msprof_agent_push");
        load_batch(step);
        check(msprof_agent_pop(), "msprof_agent_pop");

        check(msprof_agent_push("forward"), "msprof_agent_push");
        loss = 1.0 - forward();
        check(msprof_agent_pop(), "msprof_agent_pop");

        check(msprof_agent_push("backward"), "msprof_agent_push");
        backward(-loss);
        check(msprof_agent_pop(), "msprof_agent_pop");
    }

    char path[PATH_SIZE];
    check(msprof_agent_stop(path, sizeof path), "msprof_agent_stop");

    MsprofAgentStatus status = {.size = sizeof status};
    check(msprof_agent_status(&status), "msprof_agent_status");
    printf("%s\n", path);
    printf("loss %.3f, records written %llu, lost %llu\n", loss,
           (unsigned long long)status.written, (unsigned long long)status.lost);
    return 0;
}
