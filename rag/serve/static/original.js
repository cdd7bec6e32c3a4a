// Scrolls to the first box on a page that is taller than the screen.
const box = document.querySelector(".original rect");
if (box && box.getBoundingClientRect().bottom > innerHeight) box.scrollIntoView({ block: "center" });
