/** Lets the keyboard reach what scrolls: the menu, and code and tables that are wider than the column. */

const scrollers = document.querySelectorAll(".menu, article pre, article table");

function update() {
  for (const element of scrollers) {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element;
    if (scrollWidth > clientWidth || scrollHeight > clientHeight) element.setAttribute("tabindex", "0");
    else element.removeAttribute("tabindex");
  }
}

new ResizeObserver(update).observe(document.documentElement); // also calls it once
