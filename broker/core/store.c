#include "broker/core/store.h"

#include <stdlib.h>

static void row_destroy(struct store_row *row)
{
    if (row) {
        free(row->json);
        free(row);
    }
}

static void key_destroy(struct store_key *key)
{
    if (key) {
        free(key->scope);
        free(key->key);
        free(key->fingerprint);
        free(key);
    }
}

static void doc_destroy(struct store_doc *doc)
{
    if (doc) {
        free(doc->text);
        free(doc);
    }
}

void store_batch_destroy(struct store_batch *batch)
{
    if (!batch) {
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct store_item *item = &batch->items[i];
        event_destroy(item->event);
        row_destroy(item->row);
        key_destroy(item->key);
        doc_destroy(item->doc);
    }
    free(batch->items);
    free(batch);
}
