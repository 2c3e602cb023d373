/* Orders on stdin, a line each: a word and up to two numbers. */
#ifndef ORDERS_H
#define ORDERS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Order {
    char word[256];
    unsigned long first;
    unsigned long second;
} Order;

/* Says that the program is ready for its first order. */
static inline void say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

/* Sends the answer to the last order off and takes the next one; false at the end of stdin. */
static inline bool next_order(Order *order)
{
    fflush(stdout);
    if (fgets(order->word, sizeof order->word, stdin) == NULL) {
        return false;
    }
    char *end = order->word + strcspn(order->word, " \n");
    char *rest = end;
    order->first = strtoul(rest, &rest, 0);
    order->second = strtoul(rest, &rest, 0);
    *end = '\0';
    return true;
}

static inline bool is_order(const Order *order, const char *word)
{
    return strcmp(order->word, word) == 0;
}

#endif
