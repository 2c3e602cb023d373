/*
 * The control socket of the vendor's library with its ways and its faults, as a libprofapi.so that any program can be
 * started with: one client at a time, and a client that connects and goes ends it for the life of the process.
 *
 * STOCK_LOG names a file that gets a line for everything that it meets.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PARAMS = 4100, START = 1, STOP = 3, QUIT = 5, DISCONNECT = 7 };
enum { SUCCESS = 0, ALREADY_STARTED = 2, NOT_STARTED = 4 };

typedef struct Message {
    uint32_t type;
    uint32_t status;
} Message;

static char g_log[256];

static void note(const char *met)
{
    int log = open(g_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log >= 0) {
        dprintf(log, "%s\n", met);
        close(log);
    }
}

static int say(int client, uint32_t type, uint32_t status)
{
    Message message = {type, status};
    return send(client, &message, sizeof message, MSG_NOSIGNAL) == sizeof message ? 0 : -1;
}

/* Serves a client to its quit; -1 ends everything. */
static int serve(int client)
{
    static char params[PARAMS];
    int started = 0;
    if (recv(client, params, sizeof params, 0) != sizeof params || say(client, 0, SUCCESS) != 0) {
        return -1;
    }
    note("params");
    for (Message request; recv(client, &request, sizeof request, 0) == sizeof request;) {
        switch (request.type) {
        case START:
            note("start");
            say(client, START + 1, started ? ALREADY_STARTED : SUCCESS);
            started = 1;
            break;
        case STOP:
            note("stop");
            say(client, STOP + 1, started ? SUCCESS : NOT_STARTED);
            started = 0;
            break;
        case QUIT:
            note("quit");
            say(client, QUIT + 1, SUCCESS);
            say(client, DISCONNECT, SUCCESS);
            say(client, QUIT + 1, SUCCESS);
            return 0;
        default:
            return -1;
        }
    }
    return -1;
}

static void *run(void *argument)
{
    int listener = (int)(intptr_t)argument;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        note("client");
        int served = serve(client);
        close(client);
        if (served != 0) {
            note("dead");
            close(listener);
            return NULL;
        }
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *dir = getenv("MSPROF_AGENT_SOCKET_DIR");
    const char *log = getenv("STOCK_LOG");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    if (dir == NULL || log == NULL) {
        return;
    }
    snprintf(g_log, sizeof g_log, "%s", log);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/dynamic_profiling_socket_%d", dir, (int)getpid());
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0) {
        pthread_create(&thread, NULL, run, (void *)(intptr_t)listener);
    }
}
