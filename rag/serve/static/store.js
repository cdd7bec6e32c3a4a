// The threads that this browser stores: titles in one table, turns in another, which is read only for a thread shown.

const NAME = "attributed-rag";
const MAX_THREADS = 200;

let opening;

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("threads", { keyPath: "id" });
      request.result.createObjectStore("turns", { keyPath: ["thread", "number"] });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Run `act` on both tables, all of it or nothing; returns the result of the request that it returns. */
async function run(mode, act) {
  const database = await (opening ??= open());
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(["threads", "turns"], mode);
    const request = act(transaction.objectStore("threads"), transaction.objectStore("turns"));
    transaction.oncomplete = () => resolve(request?.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

const turnsOf = (id) => IDBKeyRange.bound([id], [id, []]);

/** All threads without their turns, the last used first. */
export async function listThreads() {
  const threads = await run("readonly", (table) => table.getAll());
  return threads.sort((a, b) => b.at - a.at);
}

export const loadThread = (id) => run("readonly", (threads) => threads.get(id));
export const loadTurns = (id) => run("readonly", (_, turns) => turns.getAll(turnsOf(id)));
export const saveThread = (thread) => run("readwrite", (threads) => threads.put(thread));
export const saveTurn = (turn) => run("readwrite", (_, turns) => turns.put(turn));
export const removeTurn = (turn) => run("readwrite", (_, turns) => turns.delete([turn.thread, turn.number]));

export const removeThread = (id) => run("readwrite", (threads, turns) => {
  threads.delete(id);
  turns.delete(turnsOf(id));
});

export const removeAll = () => run("readwrite", (threads, turns) => {
  threads.clear();
  turns.clear();
});

/** Remove the threads that were not used for longest, if there are too many. */
export async function removeOldest() {
  for (const thread of (await listThreads()).slice(MAX_THREADS)) await removeThread(thread.id);
}
