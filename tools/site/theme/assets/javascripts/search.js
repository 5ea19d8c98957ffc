// SPDX-License-Identifier: MIT
// The search of the theme, which also looks for all words that begin with the last one of a query: the words themselves come first,
// so that prudence_hash_lookup is before prudence_hash_lookup_name, and a double free before what Linux frees.
//
// It also works in a site that is read from a file. A browser refuses pages of file: a request for the index, and a worker. So the
// index comes as a script (hooks.py), and the worker's script runs in a frame, which has the two functions of a worker. The frame
// takes a second to read the index, so the index is loaded when the reader goes to the search, or comes from there (?h=WORD).
var __search = {transform: query => {
    const words = query.replace(/[*+\-:^~"]/g, " ").trim().split(/\s+/);
    return words[0] && `${words.map(word => `${word}^100`).join(" ")} ${words[words.length - 1]}`;
}};

if (location.protocol === "file:") {
    const root = new URL("../../", document.currentScript.src);
    __search.index = new Promise(found => {
        window.found_index = found;
        const script = document.createElement("script");
        script.src = new URL("search/search_index.js", root);
        if (new URLSearchParams(location.search).has("h"))
            document.head.append(script);
        document.addEventListener("focusin", event => {
            if (event.target.name === "query" && !script.isConnected)
                document.head.append(script);
        });
    });

    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.append(this.frame);
            const inside = this.frame.contentWindow;
            inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
            const script = inside.document.createElement("script");
            this.ready = new Promise(loaded => script.addEventListener("load", loaded));
            script.src = url;
            inside.document.body.append(script);
        }

        postMessage(data) {
            const inside = this.frame.contentWindow;
            this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", {data})));
        }
    };
}
