/** Scrolls the menu, which is longer than a window, to the current page. */

const menu = document.querySelector(".menu");
const current = menu?.querySelector("[aria-current]");
if (menu && current) {
  const [outer, inner] = [menu, current].map((element) => element.getBoundingClientRect());
  if (inner.bottom > outer.bottom) menu.scrollTop += inner.top - outer.top - outer.height / 3;
}
