// Stands in for Worker where a page is opened from a folder: browsers refuse
// workers to files. The script runs in a hidden frame, which has a global scope
// and messages of its own, as a worker has.
(() => {
  if (location.protocol !== 'file:') return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = data => this.said(data);
      this.loaded = new Promise(done => {
        const script = this.scope.document.createElement('script');
        script.onload = done;
        script.src = new URL(url, location.href).href;
        this.scope.document.body.append(script);
      });
    }

    said(data) {
      setTimeout(() => {
        const event = new MessageEvent('message', { data });
        if (this.onmessage) this.onmessage(event);
        this.dispatchEvent(event);
      });
    }

    postMessage(data) {
      this.loaded.then(() => {
        const event = new this.scope.MessageEvent('message', { data });
        this.scope.dispatchEvent(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
